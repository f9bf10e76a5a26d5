-- put.lua: store a job, or another version of it.
--
-- KEYS[1]  stored   hash  job -> "version since schedule_version text"; "" -> the newest version
-- KEYS[2]  changes  zset  "+job" -> its version, "-job" -> the version at which it was removed
-- KEYS[3]  jobs     hash  KEYS[4]  past     hash  (register.lua)
-- ARGV[1]  job   ARGV[2]  the version that it must have: 0 for none, "" for any
-- ARGV[3]  the version of its schedule   ARGV[4]  the text of the job
--
-- A version is the ms of TIME, or one more than the last: it grows, also across a loss of data. `since` stays while
-- the schedule does: a job that is new, or whose schedule changed, owes nothing from before.
-- Where a schedule comes back while the registry still remembers it, that time is over and a new one begins.
-- Returns {1, the new version}; {0, the version that is stored} where it is another, 0 for none.

local stored, changes, job, expected, schedule = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function text(number) return string.format('%.0f', number) end

local before, since, its_schedule = string.match(redis.call('HGET', stored, job) or '', '^(%d+) (%d+) (%S+) ')
if expected ~= '' and tonumber(expected) ~= tonumber(before or 0) then return {0, tonumber(before or 0)} end

local version = math.max(tonumber(redis.call('HGET', stored, '') or '') or 0, now - 1) + 1
if its_schedule ~= schedule then
  local entries = redis.call('HGET', KEYS[3], job) or ''
  local current = before and its_schedule .. ':' .. since .. ':'
  if current and string.find(' ' .. entries, ' ' .. current, 1, true) then -- replicas work by what is stored
    local past, left = {redis.call('HGET', KEYS[4], job) or nil}, {}
    for each, name, first in string.gmatch(entries, '((%w+):(%d+):%d+:%d+)') do
      if name == schedule then
        past[#past + 1] = table.concat({name, first, since}, ':')
      else
        left[#left + 1] = each
      end
    end
    redis.call('HSET', KEYS[3], job, table.concat(left, ' '))
    if #past > 0 then redis.call('HSET', KEYS[4], job, table.concat(past, ' ')) end
  end
  since = text(now)
end
redis.call('ZADD', changes, text(version), '+' .. job)
redis.call('HSET', stored, '', text(version), job, table.concat({text(version), since, schedule, ARGV[4]}, ' '))
return {1, version}
