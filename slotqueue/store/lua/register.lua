-- register.lua: a replica says that it is here and which jobs it knows, and learns since when each has been known.
--
-- KEYS[1]  epoch       string  random, made once; another value means that Redis lost its data
-- KEYS[2]  jobs        hash    job -> "version:since:seen:uptime ..." one each; "" -> "seen:uptime" of the fleet
-- KEYS[3]  decided     hash    job -> every slot up to this fire time is decided, ms
-- KEYS[4]  replicas    hash    replica id -> "seen about"
-- ARGV[1]  an epoch, should there be none   ARGV[2]  replica id   ARGV[3]  about the replica   ARGV[4]  "1": last chunk
-- then four a job: job, schedule version, since (0: none known), decided (0: none known)
--
-- A version that nobody has seen for a while is dropped once another is there. A job that was away while replicas
-- were up was removed, and owes nothing from then. "A while" is told by the fleet's uptime, which stands still while
-- no replica is there: a downtime of all removes nothing, whichever replica returns first.
-- Returns {now, epoch, {since, decided, since, decided, ...}}.

local LONGEST_GAP, QUARTER, DAY = 600000, 900000, 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call('SET', KEYS[1], ARGV[1], 'NX')
local last, uptime = string.match(redis.call('HGET', KEYS[2], '') or '', '^(%d+):(%d+)$')
uptime = tonumber(uptime or 0) + math.min(math.max(now - tonumber(last or now), 0), LONGEST_GAP)

local function text(number) return string.format('%.0f', number) end

local function since_of(job, version, known)
  local others, since = {}, nil
  for name, first, seen, at in string.gmatch(redis.call('HGET', KEYS[2], job) or '', '(%w+):(%d+):(%d+):(%d+)') do
    local is_gone = uptime - tonumber(at) > QUARTER
    if name == version then
      since = is_gone and now or tonumber(first)
    elseif not is_gone then
      others[#others + 1] = table.concat({name, first, seen, at}, ':')
    end
  end
  if known > 0 then since = math.min(since or known, known) end
  since = since or now
  others[#others + 1] = table.concat({version, text(since), text(now), text(uptime)}, ':')
  redis.call('HSET', KEYS[2], job, table.concat(others, ' '))
  return since
end

local function decided_of(job, known)
  local decided = tonumber(redis.call('HGET', KEYS[3], job) or '') or 0
  if known > decided then
    redis.call('HSET', KEYS[3], job, text(known))
    return known
  end
  return decided
end

local answers = {}
for at = 5, #ARGV, 4 do
  answers[#answers + 1] = since_of(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]))
  answers[#answers + 1] = decided_of(ARGV[at], tonumber(ARGV[at + 3]))
end

if ARGV[4] == '1' then
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local seen = tonumber(string.match(all[i + 1], '^%d+') or 0)
    if now - seen > DAY then redis.call('HDEL', KEYS[4], all[i]) end
  end
  redis.call('HSET', KEYS[4], ARGV[2], text(now) .. ' ' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[4], 2 * DAY)
  redis.call('HSET', KEYS[2], '', text(now) .. ':' .. text(uptime))
end
redis.call('PEXPIRE', KEYS[3], 365 * DAY)
return {now, redis.call('GET', KEYS[1]), answers}
