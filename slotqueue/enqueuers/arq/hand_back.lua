-- hand_back.lua: a worker gives a message back unrun: the try is not counted, and the message waits.
--
-- KEYS[1]  retry counter   string   KEYS[2]  queue  zset  id -> when to run it, ms
-- ARGV[1]  id   ARGV[2]  in how many ms, "" to leave the queue alone
--
-- Touches only what is there: a counter or an entry made here would be nobody's, and arq fails an id without a job.
-- Returns how many tries are counted now.

local tries = tonumber(redis.call('GET', KEYS[1]) or 0)
if tries > 1 then
  tries = redis.call('DECR', KEYS[1])
elseif tries == 1 then
  tries = 0
  redis.call('DEL', KEYS[1])
end
if ARGV[2] ~= '' then
  local clock = redis.call('TIME')
  local due = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[2])
  redis.call('ZADD', KEYS[2], 'XX', string.format('%.0f', due), ARGV[1])
end
return tries
