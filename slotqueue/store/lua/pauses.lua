-- pauses.lua: the pauses in force.
--
-- KEYS[1]  pauses   hash  job, or "*" for all -> until when, ms, 0 for ever
-- KEYS[2]  pausers  hash  the same -> "since who why"
--
-- Returns {job, until, "since who why", ...}, three a pause; the last is "" where that is not on record.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local answers, all = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local till = tonumber(all[i + 1])
  if till and (till == 0 or till > now) then
    answers[#answers + 1] = all[i]
    answers[#answers + 1] = all[i + 1]
    answers[#answers + 1] = redis.call('HGET', KEYS[2], all[i]) or ''
  end
end
return answers
