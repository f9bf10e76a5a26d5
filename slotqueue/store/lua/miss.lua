-- miss.lua: slots of these jobs that nobody decided, and that are not worth catching up.
--
-- KEYS[1]  epoch   KEYS[2]  decided   KEYS[3]  zset  job -> up to when its newest gap reaches, ms
-- KEYS[4]  counts  (record.lua)
-- then one a gap: the job's list of gaps, "after until recorded replica why"
-- ARGV[1]  replica   ARGV[2]  epoch
-- then six a gap: job, after (exclusive) ms, until (inclusive) ms, how many slots, how long to keep it ms, why
--
-- Slots that another replica decided meanwhile are no gap: what is left begins where the job is decided, and holds a
-- number of slots that nobody has said yet. So such a gap is not recorded: it is to be asked again, from there on.
-- A gap that continues the last one lengthens it. A list that is none is replaced. Returns from when each gap is one: it
-- is recorded, and its slots are counted, where that is its own `after`; 0 where nothing was missed; an empty list
-- where the epoch is another.

local KEEP, KEEP_COUNTS = 91 * 86400000, 365 * 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return {} end

local function text(number) return string.format('%.0f', number) end

local function miss(gaps, job, after, till, slots, keep, why)
  local from = math.max(after, tonumber(redis.call('HGET', KEYS[2], job) or '') or 0)
  if from >= till then return 0 end
  if from > after then return from end
  local first, last = from, redis.pcall('LINDEX', gaps, -1)
  if type(last) == 'table' then
    redis.call('DEL', gaps)
  elseif last then
    local begins, ends, reason = string.match(last, '^(%d+) (%d+) %d+ %S+ (.*)$')
    if ends and tonumber(ends) == from and reason == why then
      redis.call('RPOP', gaps)
      first = tonumber(begins)
    end
  end
  redis.call('RPUSH', gaps, table.concat({text(first), text(till), text(now), ARGV[1], why}, ' '))
  redis.call('LTRIM', gaps, -100, -1)
  redis.call('PEXPIRE', gaps, keep)
  redis.call('HSET', KEYS[2], job, text(till))
  redis.call('ZADD', KEYS[3], till, job)
  if slots > 0 then
    redis.pcall('HINCRBY', KEYS[4], 'missed ' .. job, slots)
    redis.pcall('PEXPIRE', KEYS[4], KEEP_COUNTS)
  end
  return from
end

local answers = {}
for i = 5, #KEYS do
  local at = 3 + (i - 5) * 6
  answers[#answers + 1] = miss(KEYS[i], ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
    tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5])
end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - KEEP)
redis.call('PEXPIRE', KEYS[3], KEEP)
return answers
