-- pause.lua: an operator pauses jobs, or lets them go on. A pause that is over is kept for a while: what fell due in it
-- is not caught up, though no replica was there to skip it.
--
-- KEYS[1]  pauses   hash  job, or "*" for all -> until when, ms, 0 for ever
-- KEYS[2]  pausers  hash  the same -> "since who why"
-- ARGV[1]  until when, ms, 0 for ever; -1: they go on now   ARGV[2]  who   ARGV[3]  why   then jobs
--
-- Returns for each job until when it was paused before, ms, 0 for ever; -1: it was not.

local KEPT = 30 * 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local till = tonumber(all[i + 1])
  if till ~= 0 and (till or 1) <= now - KEPT then
    redis.call('HDEL', KEYS[1], all[i])
    redis.call('HDEL', KEYS[2], all[i])
  end
end
local answers = {}
for i = 4, #ARGV do
  local till = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or '')
  local is_paused = till and (till == 0 or till > now)
  answers[#answers + 1] = is_paused and till or -1
  if ARGV[1] ~= '-1' then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[1])
    redis.call('HSET', KEYS[2], ARGV[i], table.concat({string.format('%.0f', now), ARGV[2], ARGV[3]}, ' '))
  elseif is_paused then
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%.0f', now))
  end
end
return answers
