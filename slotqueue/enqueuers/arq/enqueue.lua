-- enqueue.lua: put messages on arq's queues, as its own enqueue_job would, but a batch at once and under ids that may
-- return.
--
-- KEYS[1]  ids that arq shall abort  zset    KEYS[2..]  queues  zset  id -> when to run it, ms
-- ARGV[1]  arq's prefixes of keys: job   ARGV[2]  result   ARGV[3]  retry counter   ARGV[4]  in progress
-- then groups of messages: index into KEYS of their queue, n, state before, TTL in ms, how many; and for each of them
-- id and payload. The four keys of a message are made here, from prefix and id: arq lives on no cluster anyway.
--
-- n = 0: a new message; what stands under its id stays. n > 0: the sweep sends it again, and whatever an earlier run
-- left behind under the id must not stop it: result, retry counter, a wish to abort it, a wait that was agreed on.
-- In progress: only where no worker holds the slot any more; else a killed worker would block its id for minutes.
-- Returns an answer a message: 1 new, 0 the queue holds it already, or a text: why it was refused.

local abort, job_prefix, result_prefix, retry_prefix, progress_prefix = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local FREED = {running = true, postponed = true, failed = true}

local clock = redis.call('TIME')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))

local function send_first(queue, id, payload, ttl)
  local job = job_prefix .. id
  if redis.call('EXISTS', result_prefix .. id) == 1 and redis.call('EXISTS', job) == 0 then
    return 'a result is kept under this id, so arq would not run it'
  end
  local is_new = redis.call('SET', job, payload, 'PX', ttl, 'NX')
  redis.call('ZADD', queue, 'NX', now, id)
  return is_new and 1 or 0
end

local function send_again(queue, id, payload, ttl, before)
  local is_new = redis.call('EXISTS', job_prefix .. id) == 0
  redis.call('DEL', retry_prefix .. id)
  if FREED[before] then redis.call('DEL', progress_prefix .. id) end
  if is_new then
    redis.call('DEL', result_prefix .. id)
    redis.call('ZREM', abort, id)
  end
  redis.call('SET', job_prefix .. id, payload, 'PX', ttl)
  redis.call('ZADD', queue, 'LT', now, id)
  return is_new and 1 or 0
end

local answers, at = {}, 5
while at < #ARGV do
  local queue, before, ttl, count = KEYS[tonumber(ARGV[at])], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
  local send = ARGV[at + 1] == '0' and send_first or send_again
  at = at + 5
  for _ = 1, count do
    local is_done, answer = pcall(send, queue, ARGV[at], ARGV[at + 1], ttl, before)
    if not is_done then answer = type(answer) == 'table' and answer.err or tostring(answer) end
    answers[#answers + 1] = answer
    at = at + 2
  end
end
return answers
