-- told.lua: why slots ended, and their last errors.
--
-- KEYS     records, one a slot
--
-- Returns {state, why, error} a slot, each "" where there is none.

local answers = {}
for i, record in ipairs(KEYS) do
  local got = redis.pcall('HMGET', record, 'state', 'why', 'error')
  answers[i] = got.err and {'', '', ''} or {got[1] or '', got[2] or '', got[3] or ''}
end
return answers
