-- claim.lua: win slots that are due, each at most once.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV[1]  replica id   ARGV[2]  epoch   ARGV[3]  grace for the enqueue, ms
-- ARGV[4]  how long before its time a slot may be claimed, ms: its owner waits with the message. None of a job whose
--          slots may not overlap: what stands in its way is judged in time
-- then groups of slots that share what five arguments say: how many they are, fire time ms, start of the interval ms,
-- task, terms; and behind them one a slot: the version of its job
--
-- Returns {now in microseconds, 0} where the epoch is another: Redis lost its data, nothing is claimed.
-- Else {the same, 1, {an answer a slot, equal ones as one (record.lua)}}: "won", "taken", "early", "stale", {"held", why}, {"skipped", why}, {"broken", what}.
-- "won" also answers the owner that asks again, but only while the slot is claimed by its first enqueue; so does "held".
-- "stale" is an offer for a stored job that was changed or removed since.

local SOME = 1500
local micros = clock[1] * 1000000 + clock[2]
local replica, grace, ahead = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local count = #KEYS - SHARED

if redis.call('GET', KEYS[EPOCH]) ~= ARGV[2] then return {micros, 0} end
local pausing = redis.call('EXISTS', KEYS[PAUSES]) == 1
redis.call('ZCARD', KEYS[OPEN]) -- a key of another type fails here, before anything is written

-- What a burst must know of all its slots is asked of many at once: who holds their claims, and of those that nobody
-- else has, whether any has left a trace (a done marker, a record, a claim of another type), and up to when their jobs
-- are decided.
local slots, has_traces, decided, decisions = {}, false, {}, {}
for first = 1, count, SOME do
  local last, jobs, traces = math.min(first + SOME - 1, count), {}, {}
  local owners = redis.call('MGET', unpack(KEYS, SHARED + first, SHARED + last))
  for i = first, last do
    local owner = owners[i - first + 1]
    local is_taken = owner and owner ~= replica
    slots[i] = not is_taken and slot_at(i)
    if not is_taken then
      local slot, at = slots[i], #traces
      jobs[#jobs + 1] = slot.job
      traces[at + 1], traces[at + 2], traces[at + 3] = slot.claim, slot.done, slot.record
    end
  end
  if #jobs > 0 then
    has_traces = redis.call('EXISTS', unpack(traces)) > 0 or has_traces
    for i, at in ipairs(redis.call('HMGET', KEYS[DECIDED], unpack(jobs))) do decided[jobs[i]] = tonumber(at or '') or 0 end
  end
end

local function write_decisions()
  for i = 1, #decisions, SOME do
    redis.call('HSET', KEYS[DECIDED], unpack(decisions, i, math.min(i + SOME - 1, #decisions)))
  end
end

-- There is a claim of ours, a done marker or a record.
local function answer_again(slot, is_ours)
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if not is_ours or not record or record.n > 0 then return 'taken' end
  if record.state == 'held' then return {'held', ''} end
  return record.state == 'claimed' and 'won' or 'taken'
end

local claims = 0

local function skip(slot, terms, why)
  close(slot, terms, 'skipped', why)
  return {'skipped', why}
end

-- The answer where something is there already; nil where the slot is free.
local function look(slot)
  if not slot then return 'taken' end
  if not has_traces then return nil end
  local owner = redis.pcall('GET', slot.claim)
  if type(owner) == 'table' then return {'broken', owner.err} end
  if owner or redis.call('EXISTS', slot.done, slot.record) > 0 then return answer_again(slot, owner) end
end

-- How long claim and record live unless something happens: confirm.lua counts on it where slots may overlap.
local function life_of(terms)
  if terms.overlap ~= 'a' then return grace + terms.retention end
  return LATE_CONFIRM + wait_in_queue(terms, 0) + terms.retention
end

-- The record of a slot that is won. Of a burst's group the first is written, the others are copied from it with their
-- life: all but the version is the same.
local function write_record(slot, group, version)
  if group.first then
    redis.call('COPY', group.first, slot.record)
    if version ~= group.version then redis.call('HSET', slot.record, 'version', version) end
    return
  end
  redis.call('HSET', slot.record, 'state', 'claimed', 'by', replica, 'claimed', now, 'n', 0, 'fire', group.fire_text,
    'start', group.start, 'task', group.task, 'version', version, 'terms', group.text)
end

local function claim(slot, group, version)
  local answer = look(slot)
  if answer then return answer end
  local fire, terms = group.fire, group.terms
  if fire > now + (terms and terms.overlap == 'a' and ahead or 0) then return 'early' end
  local stored = stored_version(version)
  if stored and tonumber(redis.call('ZSCORE', KEYS[CHANGES], '+' .. slot.job) or '') ~= stored then return 'stale' end
  if not terms then return {'broken', 'the terms are damaged: ' .. group.text} end
  if fire <= decided[slot.job] and is_missed(slot, fire) then return 'taken' end -- a replica came to it earlier
  local indexed = redis.pcall('ZADD', slot.index, fire, slot.tail)
  if type(indexed) == 'table' then
    if string.find(indexed.err, 'WRONGTYPE', 1, true) then return {'broken', indexed.err} end
    redis.call('ZADD', slot.index, fire, slot.tail) -- out of memory, or no master: that is no single slot's trouble
  end
  redis.call('PEXPIRE', slot.index, math.max(terms.history, KEEP_DEAD))
  -- In a burst, now and then is enough to keep the index short.
  if count <= 50 or (now + fire / 1000) % 8 < 1 then redis.call('ZREMRANGEBYSCORE', slot.index, '-inf', now - terms.history) end

  claims = claims + 1
  redis.call('SET', slot.claim, replica, 'NX', 'PX', group.life)
  write_record(slot, group, version)
  if fire > decided[slot.job] then
    decided[slot.job] = fire
    decisions[#decisions + 1] = slot.job
    decisions[#decisions + 1] = group.fire_text
  end
  if pausing and is_paused(slot.job, fire) then return skip(slot, terms, 'paused') end
  if terms.expires > 0 and now > fire + terms.expires then
    return skip(slot, terms, 'expired before it was claimed')
  end
  if terms.overlap ~= 'a' then
    local word, why, other = gate(slot, terms, fire)
    if word then return put_behind(slot, terms, fire, word, why, other) end
    set_deadline(slot, terms, now + grace) -- at once: the next slot of the batch may be another one of the job
    return 'won'
  end
  batch_deadline(slot, terms, now + grace)
  longest_life = math.max(longest_life, group.life) -- nothing open is on record for longer than in the index
  if not group.first then
    redis.call('PEXPIRE', slot.record, group.life)
    group.first, group.version = slot.record, version
  end
  return 'won'
end

local at, k = 5, 0
while at < #ARGV do
  local group = {
    fire = tonumber(ARGV[at + 1]), fire_text = ARGV[at + 1], start = ARGV[at + 2], task = ARGV[at + 3],
    text = ARGV[at + 4], terms = terms_of(ARGV[at + 4]),
  }
  group.life = group.terms and life_of(group.terms)
  local first = at + 5
  at = first + tonumber(ARGV[at])
  for i = first, at - 1 do
    k = k + 1
    say(claim(slots[k], group, ARGV[i]))
  end
end
if claims > 0 then reckon('claimed', claims) end
write_deadlines()
write_decisions()
return {micros, 1, said}
