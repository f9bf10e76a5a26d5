-- changes.lua: what has changed about the stored jobs since a replica last asked; next to nothing where nothing has.
--
-- KEYS[1]  stored  hash   KEYS[2]  changes  zset  (put.lua)   KEYS[3]  epoch
-- ARGV[1]  the version up to which it knows them, 0 for nothing   ARGV[2]  epoch   ARGV[3]  how many at most
--
-- Who knows a newer version than there is has seen data that Redis lost since: it gets all from the start.
-- Returns {} where the epoch is another; else {from, up to which version they are told, how many jobs are stored, whether more follow,
-- {job, entry, ...}}: entry is "" for one that was removed.

local stored, changes = KEYS[1], KEYS[2]
local known, limit = tonumber(ARGV[1]), tonumber(ARGV[3])
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return {} end
local version = tonumber(redis.call('HGET', stored, '') or '') or 0
local count = math.max(redis.call('HLEN', stored) - 1, 0)
if version == known then return {known, known, count, 0, {}} end
if version < known then known = 0 end

local rows = redis.call('ZRANGEBYSCORE', changes, '(' .. string.format('%.0f', known), '+inf', 'WITHSCORES', 'LIMIT', 0,
  limit)
local is_more, answers = #rows == limit * 2 and 1 or 0, {}
for i = 1, #rows, 2 do
  local sign, job = string.sub(rows[i], 1, 1), string.sub(rows[i], 2)
  local entry = redis.call('HGET', stored, job)
  if entry or sign == '-' then
    answers[#answers + 1] = job
    answers[#answers + 1] = entry or ''
  end
end
return {known, is_more == 1 and tonumber(rows[#rows]) or version, count, is_more, answers}
