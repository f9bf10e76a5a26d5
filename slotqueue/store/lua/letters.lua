-- letters.lua: dead letters that came since, the oldest first.
--
-- KEYS[1]  dead     zset    slot key -> since when, ms
-- KEYS[2]  letters  string  from when on somebody is told of dead letters, ms; set at the first call
-- ARGV[1]  from when on (inclusive), ms   ARGV[2]  how many at most
--
-- What is older than a day is not told any more. Returns {slot key, since when, slot key, since when, ...}.

local DAY = 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call('SET', KEYS[2], string.format('%.0f', now), 'NX')
redis.call('PEXPIRE', KEYS[2], 365 * DAY)
local from = math.max(tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[2])) or 0, now - DAY)
return redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', from), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
