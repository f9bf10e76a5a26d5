-- waiting.lua: which of these slots wait for a message that is out.
--
-- KEYS     records, one a slot
-- ARGV     slot keys, in the same order
--
-- Returns {slot key, state, n, task} for each that is queued or postponed.

local answers = {}
for i, record in ipairs(KEYS) do
  local got = redis.pcall('HMGET', record, 'state', 'n', 'task')
  if not got.err and (got[1] == 'queued' or got[1] == 'postponed') and tonumber(got[2]) and got[3] then
    answers[#answers + 1] = {ARGV[i], got[1], got[2], got[3]}
  end
end
return answers
