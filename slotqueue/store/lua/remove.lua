-- remove.lua: take a stored job out. No slot of it is claimed from now on, and none from before is begun or enqueued.
--
-- KEYS[1]  stored   hash   KEYS[2]  changes  zset   (put.lua)
-- KEYS[3]  jobs     hash   KEYS[4]  past     hash   (register.lua)
-- ARGV[1]  job   ARGV[2]  the version that it must have, "" for any
--
-- That it was removed is remembered for 90 days: longer than a message of it should wait anywhere. In the registry it
-- is in force no more, if replicas work by it; what they say of a job of its name in code stays.
-- Returns {1, the version of the removal}; {0, the version that is stored} where it is another, 0 for none.

local stored, changes, job, expected = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local KEEP = 90 * 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function text(number) return string.format('%.0f', number) end

local entry = redis.call('HGET', stored, job)
if not entry then return {0, 0} end
local before = string.match(entry, '^(%d+) ')
if expected ~= '' and tonumber(expected) ~= tonumber(before or 0) then return {0, tonumber(before or 0)} end

local version = math.max(tonumber(redis.call('HGET', stored, '') or '') or 0, now - 1) + 1
for _, old in ipairs(redis.call('ZRANGEBYSCORE', changes, '-inf', text(now - KEEP))) do
  if string.sub(old, 1, 1) == '-' then redis.call('ZREM', changes, old) end
end
redis.call('ZREM', changes, '+' .. job)
redis.call('ZADD', changes, text(version), '-' .. job)
redis.call('HDEL', stored, job)
redis.call('HSET', stored, '', text(version))

local since, schedule = string.match(entry, '^%d+ (%d+) (%S+) ')
local entries = redis.call('HGET', KEYS[3], job) or ''
if since and string.find(' ' .. entries, ' ' .. schedule .. ':' .. since .. ':', 1, true) then
  local past = {redis.call('HGET', KEYS[4], job) or nil}
  for name, first in string.gmatch(entries, '(%w+):(%d+):%d+:%d+') do
    past[#past + 1] = table.concat({name, first, name == schedule and text(now) or since}, ':')
  end
  redis.call('HSET', KEYS[4], job, table.concat(past, ' '))
  redis.call('HSET', KEYS[3], job, '')
end
return {1, version}
