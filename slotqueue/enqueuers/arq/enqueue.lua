-- enqueue.lua: put messages on arq's queues, as its own enqueue_job would, but a batch at once and under ids that may return.
--
-- KEYS[1]  ids that arq shall abort  zset    KEYS[2..]  queues  zset  id -> when to run it, ms
-- ARGV[1]  arq's prefixes of keys: job   ARGV[2]  result   ARGV[3]  retry counter   ARGV[4]  in progress
-- then six a message: index into KEYS of its queue, id, n, state before, TTL in ms, payload
--
-- The four keys of a message are made here, from prefix and id, since arq cannot live on a cluster anyway.
-- n = 0: a new message; what stands under its id stays. n > 0: the sweep sends it again: whatever an earlier run left
-- behind under the id must not stop it: result, retry counter, a wish to abort it, a wait that was agreed on.
-- In progress: only where no worker holds the slot any more; else a killed worker would block its id for minutes.
-- Returns an answer a message: 1 new, 0 the queue holds it already, or a text: why it was refused.

local abort, job_prefix, result_prefix, retry_prefix, progress_prefix = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local FREED = {running = true, postponed = true, failed = true}

local clock = redis.call('TIME')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))

local function enqueue(queue, id, n, before, ttl, payload)
  local job = job_prefix .. id
  local is_again = n ~= '0'
  local is_new = redis.call('EXISTS', job) == 0
  if is_again then
    redis.call('DEL', retry_prefix .. id)
    if FREED[before] then redis.call('DEL', progress_prefix .. id) end
    if is_new then
      redis.call('DEL', result_prefix .. id)
      redis.call('ZREM', abort, id)
    end
  elseif is_new and redis.call('EXISTS', result_prefix .. id) == 1 then
    return 'a result is kept under this id, so arq would not run it'
  end
  if is_new or is_again then redis.call('SET', job, payload, 'PX', ttl) end
  redis.call('ZADD', queue, is_again and 'LT' or 'NX', now, id)
  return is_new and 1 or 0
end

local answers = {}
for at = 5, #ARGV, 6 do
  local is_done, answer = pcall(enqueue, KEYS[tonumber(ARGV[at])], unpack(ARGV, at + 1, at + 5))
  if not is_done then answer = type(answer) == 'table' and answer.err or tostring(answer) end
  answers[#answers + 1] = answer
end
return answers
