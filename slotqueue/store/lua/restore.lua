-- restore.lua: stored jobs that Redis lost, from the memory of a replica. What is there, or was removed since, stays so.
--
-- KEYS[1]  stored  hash   KEYS[2]  changes  zset  (put.lua)
-- ARGV     two a job: its name, its entry
--
-- Returns how many were brought back.

local stored, changes, count = KEYS[1], KEYS[2], 0
for i = 1, #ARGV, 2 do
  local job, entry = ARGV[i], ARGV[i + 1]
  local version = tonumber(string.match(entry, '^%d+'))
  local removed = tonumber(redis.call('ZSCORE', changes, '-' .. job) or '') or 0
  if version and version > removed and redis.call('HSETNX', stored, job, entry) == 1 then
    redis.call('ZADD', changes, string.format('%.0f', version), '+' .. job)
    local last = tonumber(redis.call('HGET', stored, '') or '') or 0
    if version > last then redis.call('HSET', stored, '', string.format('%.0f', version)) end
    count = count + 1
  end
end
return count
