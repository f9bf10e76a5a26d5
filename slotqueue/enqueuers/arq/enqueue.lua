-- enqueue.lua: put messages on arq's queues, as its own enqueue_job would, but a batch at once and under ids that may
-- return.
--
-- KEYS[1]  ids that arq shall abort  zset    KEYS[2..]  queues  zset  id -> when to run it, ms
-- ARGV[1]  arq's prefixes of keys: job   ARGV[2]  result   ARGV[3]  retry counter   ARGV[4]  in progress
-- then groups of messages: index into KEYS of their queue, n, state before, not before when to run them, TTL, how many
-- (times in ms); and for each of them id and payload. The four keys of a message are made here, from prefix and id: arq
-- lives on no cluster anyway.
--
-- n = 0: a new message; what stands under its id stays. n > 0: the sweep sends it again, and whatever an earlier run
-- left behind under the id must not stop it: result, retry counter, a wish to abort it, a wait that was agreed on.
-- In progress: only where no worker holds the slot any more; else a killed worker would block its id for minutes.
-- Returns an answer a message: 1 new, 0 the queue holds it already, or a text: why it was refused.

local abort, job_prefix, result_prefix, retry_prefix, progress_prefix = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local FREED = {running = true, postponed = true, failed = true, held = true, dead = true, lost = true}
local AT_ONCE = 200

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local answers = {}

-- Messages at ARGV[first], payloads behind them. Few calls, since this is the path of every new slot.
local function send_first(queue, when, ttl, first, last)
  local results, entries = {}, {}
  for i = first, last, 2 do results[#results + 1] = result_prefix .. ARGV[i] end
  local is_any_kept = redis.call('EXISTS', unpack(results)) > 0
  for i = first, last, 2 do
    local id, job = ARGV[i], job_prefix .. ARGV[i]
    if is_any_kept and redis.call('EXISTS', result_prefix .. id) == 1 and redis.call('EXISTS', job) == 0 then
      answers[#answers + 1] = 'a result is kept under this id, so arq would not run it'
    else
      answers[#answers + 1] = redis.call('SET', job, ARGV[i + 1], 'PX', ttl, 'NX') and 1 or 0
      entries[#entries + 1] = when
      entries[#entries + 1] = id
    end
  end
  if #entries > 0 then redis.call('ZADD', queue, 'NX', unpack(entries)) end
end

local function send_again(queue, when, ttl, before, id, payload)
  local is_new = redis.call('EXISTS', job_prefix .. id) == 0
  redis.call('DEL', retry_prefix .. id)
  if FREED[before] then redis.call('DEL', progress_prefix .. id) end
  if is_new then
    redis.call('DEL', result_prefix .. id)
    redis.call('ZREM', abort, id)
  end
  redis.call('SET', job_prefix .. id, payload, 'PX', ttl)
  redis.call('ZADD', queue, 'LT', when, id)
  answers[#answers + 1] = is_new and 1 or 0
end

-- What stands in the way of a whole group, found before its first write.
local function problem_with(queue)
  for _, key in ipairs({queue, abort}) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'zset' and kind ~= 'none' then return 'WRONGTYPE ' .. key .. ' is a ' .. kind .. ', not a queue of arq' end
  end
end

local at = 5
while at < #ARGV do
  local queue, is_first, before = KEYS[tonumber(ARGV[at])], ARGV[at + 1] == '0', ARGV[at + 2]
  local when, ttl = string.format('%.0f', math.max(now, tonumber(ARGV[at + 3]))), ARGV[at + 4]
  local first, last = at + 6, at + 4 + 2 * tonumber(ARGV[at + 5])
  local problem = problem_with(queue)
  if problem then
    for _ = first, last, 2 do answers[#answers + 1] = problem end
  elseif is_first then
    for i = first, last, 2 * AT_ONCE do send_first(queue, when, ttl, i, math.min(last, i + 2 * AT_ONCE - 2)) end
  else
    for i = first, last, 2 do send_again(queue, when, ttl, before, ARGV[i], ARGV[i + 1]) end
  end
  at = last + 2
end
return answers
