-- register.lua: a replica says that it is here and which jobs it knows, and learns since when each has been known.
--
-- KEYS[1]  epoch       string  random, made once; another value means that Redis lost its data
-- KEYS[2]  jobs        hash    job -> "version:since:seen:uptime ..." one each; "" -> "seen:uptime" of the fleet
-- KEYS[3]  decided     hash    job -> every slot up to this fire time is decided, ms
-- KEYS[4]  replicas    hash    replica id -> "seen about"
-- KEYS[5]  schedules   hash    schedule version -> the schedule's text
-- KEYS[6]  about       hash    job -> what else is said about it
-- KEYS[7]  past        hash    job -> "version:since:until ..." of versions that are in force no more
-- ARGV[1]  an epoch, should there be none   ARGV[2]  replica id   ARGV[3]  about the replica   ARGV[4]  "1": last chunk
-- then six a job, each job once and 1,000 at most: job, schedule version, since (0: none known), decided (0: none
-- known), the schedule's text, about the job (both "" where they were said before)
--
-- A version that nobody has seen for a while is dropped once another is there. A job that was away while replicas
-- were up was removed, and owes nothing from then. "A while" is told by the fleet's uptime, which stands still while
-- no replica is there: a downtime of all removes nothing, whichever replica returns first.
-- Returns {now, epoch, {since, decided, since, decided, ...}, rank, size}: with the last chunk, how many replicas have
-- been heard of lately and how many of their ids come before this one's; else 0, 0.

local LONGEST_GAP, QUARTER, DAY = 600000, 900000, 86400000
local SILENT = 25000 -- two signs of life and a half
local KEEP_PAST, MOST_PAST, KEEP_ABOUT = 91 * DAY, 50, 365 * DAY
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call('SET', KEYS[1], ARGV[1], 'NX')
local last, uptime = string.match(redis.call('HGET', KEYS[2], '') or '', '^(%d+):(%d+)$')
uptime = tonumber(uptime or 0) + math.min(math.max(now - tonumber(last or now), 0), LONGEST_GAP)

local function text(number) return string.format('%.0f', number) end

-- One call for many fields: a start registers thousands of jobs.
local function read(key, fields) return #fields > 0 and redis.call('HMGET', key, unpack(fields)) or {} end
local function write(key, said)
  if #said > 0 then redis.call('HSET', key, unpack(said)) end
end

-- Remember when versions were in force: what an audit expects of the time before.
local function keep_past(job, gone)
  local kept = {}
  for entry, till in string.gmatch(redis.call('HGET', KEYS[7], job) or '', '(%w+:%d+:(%d+))') do
    if now - tonumber(till) < KEEP_PAST then kept[#kept + 1] = entry end
  end
  for _, entry in ipairs(gone) do kept[#kept + 1] = entry end
  redis.call('HSET', KEYS[7], job, table.concat(kept, ' ', math.max(1, #kept - MOST_PAST + 1)))
end

-- Since when this version of a job is known, and what is to stand in `jobs`, of what stood there.
local function since_of(job, version, known, before)
  local others, gone, since = {}, {}, nil
  for name, first, seen, at in string.gmatch(before or '', '(%w+):(%d+):(%d+):(%d+)') do
    local is_gone = uptime - tonumber(at) > QUARTER
    if is_gone then gone[#gone + 1] = {name, first, tonumber(seen)} end
    if name == version then
      since = is_gone and now or tonumber(first)
    elseif not is_gone then
      others[#others + 1] = table.concat({name, first, seen, at}, ':')
    end
  end
  if known > 0 then since = math.min(since or known, known) end
  since = since or now
  for i, each in ipairs(gone) do
    -- In force until this version came, unless it was gone by then.
    local till = since < now and math.max(each[3], since) or each[3]
    gone[i] = table.concat({each[1], each[2], text(till)}, ':')
  end
  if #gone > 0 then keep_past(job, gone) end
  others[#others + 1] = table.concat({version, text(since), text(now), text(uptime)}, ':')
  return since, table.concat(others, ' ')
end

local names = {}
for at = 5, #ARGV, 6 do names[#names + 1] = ARGV[at] end
local before, decided = read(KEYS[2], names), read(KEYS[3], names)
local jobs, newly_decided, schedules, about, answers = {}, {}, {}, {}, {}
local function say(list, field, value) list[#list + 1], list[#list + 2] = field, value end
for i, job in ipairs(names) do
  local at = 6 * i - 1
  local version, known, known_decided = ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local since, entry = since_of(job, version, known, before[i])
  local till = tonumber(decided[i] or '') or 0
  say(jobs, job, entry)
  if known_decided > till then say(newly_decided, job, text(known_decided)) end
  if ARGV[at + 4] ~= '' then say(schedules, version, ARGV[at + 4]) end
  if ARGV[at + 5] ~= '' then say(about, job, ARGV[at + 5]) end
  answers[#answers + 1] = since
  answers[#answers + 1] = math.max(till, known_decided)
end
write(KEYS[2], jobs)
write(KEYS[3], newly_decided)
write(KEYS[5], schedules)
write(KEYS[6], about)

local rank, size = 0, 0
if ARGV[4] == '1' then
  size = 1
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local seen = tonumber(string.match(all[i + 1], '^%d+') or 0)
    if now - seen > DAY then
      redis.call('HDEL', KEYS[4], all[i])
    elseif now - seen < SILENT and all[i] ~= ARGV[2] then
      size = size + 1
      if all[i] < ARGV[2] then rank = rank + 1 end
    end
  end
  redis.call('HSET', KEYS[4], ARGV[2], text(now) .. ' ' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[4], 2 * DAY)
  redis.call('HSET', KEYS[2], '', text(now) .. ':' .. text(uptime))
  for _, key in ipairs({KEYS[5], KEYS[6], KEYS[7]}) do redis.call('PEXPIRE', key, KEEP_ABOUT) end
end
redis.call('PEXPIRE', KEYS[3], KEEP_ABOUT)
return {now, redis.call('GET', KEYS[1]), answers, rank, size}
