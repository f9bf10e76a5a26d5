-- heads.lua: the newest slot on record of each of these jobs.
--
-- KEYS     listings, one a job
--
-- Returns the tail of its key for each, "" where there is none.

local answers = {}
for i, listing in ipairs(KEYS) do
  local found = redis.pcall('ZREVRANGE', listing, 0, 0)
  answers[i] = not found.err and found[1] or ''
end
return answers
