-- claim.lua: win slots that are due, each at most once.
--
-- KEYS     the shared ones, then four a slot (record.lua)
-- ARGV[1]  replica id   ARGV[2]  epoch   ARGV[3]  grace for the enqueue, ms
-- then six a slot: job, fire time ms, start of the interval ms, task, version, terms
--
-- Returns {now, 0} where the epoch is another: Redis lost its data, nothing is claimed.
-- Else {now, 1, {an answer a slot}}: "won", "taken", "early", "stale", {"held", why}, {"skipped", why}, {"broken", what}.
-- "won" also answers the owner that asks again, but only while the slot is claimed by its first enqueue; so does "held".
-- "stale" is an offer for a stored job that was changed or removed since.

local AT, SOME = 3, 2000
local replica, grace = ARGV[1], tonumber(ARGV[3])
local count = (#ARGV - AT) / 6

if redis.call('GET', KEYS[EPOCH]) ~= ARGV[2] then return {now, 0} end
local pausing = redis.call('EXISTS', KEYS[PAUSES]) == 1
redis.call('ZCARD', KEYS[OPEN]) -- a key of another type fails here, before anything is written

-- Up to when each job of the batch is decided.
local decided, decisions = {}, {}
for first = 1, count, SOME do
  local jobs, last = {}, math.min(first + SOME - 1, count)
  for i = first, last do jobs[#jobs + 1] = ARGV[AT + (i - 1) * 6 + 1] end
  for i, at in ipairs(redis.call('HMGET', KEYS[DECIDED], unpack(jobs))) do decided[jobs[i]] = tonumber(at or '') or 0 end
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

local function skip(slot, terms, why)
  close(slot, terms, 'skipped', why)
  return {'skipped', why}
end

local function claim(slot, job, fire_ms, start_ms, task, version, text)
  local owner = redis.pcall('GET', slot.claim)
  if type(owner) == 'table' then return {'broken', owner.err} end
  if owner and owner ~= replica then return 'taken' end
  if owner or redis.call('EXISTS', slot.done, slot.record) > 0 then return answer_again(slot, owner) end
  local fire, terms = tonumber(fire_ms), terms_of(text)
  if fire > now then return 'early' end
  local stored = stored_version(version)
  if stored and tonumber(redis.call('ZSCORE', KEYS[CHANGES], '+' .. job) or '') ~= stored then return 'stale' end
  if not terms then return {'broken', 'the terms are damaged: ' .. text} end
  local tail = string.sub(slot.key, string.find(slot.key, ':', 1, true) + string.len(job) + 2)
  local indexed = redis.pcall('ZADD', slot.index, fire, tail)
  if type(indexed) == 'table' then
    if string.find(indexed.err, 'WRONGTYPE', 1, true) then return {'broken', indexed.err} end
    redis.call('ZADD', slot.index, fire, tail) -- out of memory, or no master: that is no single slot's trouble
  end
  redis.call('PEXPIRE', slot.index, math.max(terms.history, KEEP_DEAD))
  -- In a burst, now and then is enough to keep the index short.
  if count <= 50 or (now + fire / 1000) % 8 < 1 then redis.call('ZREMRANGEBYSCORE', slot.index, '-inf', now - terms.history) end

  local life = grace + terms.retention
  redis.call('SET', slot.claim, replica, 'NX', 'PX', life)
  redis.call('HSET', slot.record, 'state', 'claimed', 'by', replica, 'claimed', now, 'n', 0, 'fire', fire_ms,
    'start', start_ms, 'task', task, 'version', version, 'terms', text)
  if fire > decided[job] then
    decided[job] = fire
    decisions[#decisions + 1] = job
    decisions[#decisions + 1] = fire_ms
  end
  if pausing and is_paused(job, fire) then
    return skip(slot, terms, 'paused')
  end
  if terms.expires > 0 and now > fire + terms.expires then
    return skip(slot, terms, 'expired before it was claimed')
  end
  if terms.overlap ~= 'a' then
    local word, why, other = gate(slot, terms, fire)
    if word then return put_behind(slot, terms, fire, word, why, other) end
    set_deadline(slot, terms, now + grace) -- at once: the next slot of the batch may be another one of the job
    return 'won'
  end
  redis.call('PEXPIRE', slot.record, batch_deadline(slot, terms, now + grace))
  return 'won'
end

local answers = {}
for i = 1, count do
  local at = AT + (i - 1) * 6
  answers[i] = claim(slot_at(i), unpack(ARGV, at + 1, at + 6))
end
write_deadlines()
write_decisions()
return {now, 1, answers}
