-- enlist.lua: a guarded worker says that it is here and which tasks it knows.
--
-- KEYS[1]  workers  hash  worker id -> "seen about"     KEYS[2]  tasks  zset  task -> when a guarded worker was seen
-- ARGV[1]  worker id   ARGV[2]  about the worker   then its tasks
--
-- A task counts as guarded for 90 days after the last such worker was seen. Returns now.

local DAY = 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local seen = tonumber(string.match(all[i + 1], '^%d+') or 0)
  if now - seen > DAY then redis.call('HDEL', KEYS[1], all[i]) end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], 2 * DAY)
for i = 3, #ARGV do redis.call('ZADD', KEYS[2], now, ARGV[i]) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 90 * DAY)
redis.call('PEXPIRE', KEYS[2], 91 * DAY)
return now
