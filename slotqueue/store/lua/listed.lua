-- listed.lua: the slots on record of each of these jobs, by fire time.
--
-- KEYS     listings, one a job
-- ARGV     two a job: from (inclusive), until (inclusive), ms
--
-- Returns the tails of their keys for each job, oldest first, with a blank between two.

local answers = {}
for i, listing in ipairs(KEYS) do
  local found = redis.pcall('ZRANGEBYSCORE', listing, ARGV[i * 2 - 1], ARGV[i * 2])
  answers[i] = not found.err and table.concat(found, ' ') or ''
end
return answers
