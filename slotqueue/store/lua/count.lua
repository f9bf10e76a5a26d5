-- count.lua: slots that nobody decided and that were recorded as a gap, for the counts of the namespace (record.lua).
--
-- KEYS[1]  counts   hash
-- ARGV     two a job: its name, how many slots
--
-- Returns how many jobs were counted.

local KEEP = 365 * 86400000
for i = 1, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], 'missed ' .. ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], KEEP)
return #ARGV / 2
