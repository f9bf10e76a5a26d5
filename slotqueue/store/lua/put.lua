-- put.lua: store a job, or another version of it.
--
-- KEYS[1]  stored   hash  job -> "version since schedule_version text"; "" -> the newest version
-- KEYS[2]  changes  zset  "+job" -> its version, "-job" -> the version at which it was removed
-- ARGV[1]  job   ARGV[2]  the version that it must have: 0 for none, "" for any
-- ARGV[3]  the version of its schedule   ARGV[4]  the text of the job
--
-- A version is the ms of TIME, or one more than the last: it grows, also across a loss of data. `since` stays while
-- the schedule does: a job that is new, or whose schedule changed, owes nothing from before.
-- Returns {1, the new version}; {0, the version that is stored} where it is another, 0 for none.

local stored, changes, job, expected, schedule = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function text(number) return string.format('%.0f', number) end

local before, since, its_schedule = string.match(redis.call('HGET', stored, job) or '', '^(%d+) (%d+) (%S+) ')
if expected ~= '' and tonumber(expected) ~= tonumber(before or 0) then return {0, tonumber(before or 0)} end

local version = math.max(tonumber(redis.call('HGET', stored, '') or '') or 0, now - 1) + 1
if its_schedule ~= schedule then since = text(now) end
redis.call('ZADD', changes, text(version), '+' .. job)
redis.call('HSET', stored, '', text(version), job, table.concat({text(version), since, schedule, ARGV[4]}, ' '))
return {1, version}
