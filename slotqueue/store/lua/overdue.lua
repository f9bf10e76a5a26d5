-- overdue.lua: the open slots past their deadline, the longest overdue first.
--
-- KEYS[1]  open slots   zset  slot key -> deadline, ms of Redis time
-- ARGV[1]  how many at most
--
-- Returns {now, {slot keys}, how many slots are open in all}.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local keys = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
return {now, keys, redis.call('ZCARD', KEYS[1])}
