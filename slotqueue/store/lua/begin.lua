-- begin.lua: a worker asks whether it may run a slot; the one place that decides it.
--
-- KEYS     the shared ones, then the slot's (record.lua)
-- ARGV[1]  token of this delivery   ARGV[2]  worker   ARGV[3]  the fence that the message was sent by, "any" or ""
-- ARGV[4..9]  what the message says: n, fire time, start, task, version, terms
--
-- Returns {"run", fence, attempt, terms, how long it has waited ms}, or {word}: "done", "over", "busy", "skipped", "expired", "lost";
-- or {"broken", what}, or {"early", in how many ms it is time}.

local token, worker, from_fence = ARGV[1], ARGV[2], ARGV[3]
local slot = slot_at(1)
local slip = slip_at(4)
local record, wrong = load(slot)

-- A message may wait in a queue for its time (claim.lua), and be taken early by a worker whose clock is ahead. A fire
-- time that is farther away than any claim was made ahead is Redis's clock set back: the slot is not kept waiting.
local LONGEST_AHEAD = 2000
local function early(fire)
  local left = fire - now
  return left > 0 and left <= LONGEST_AHEAD and {'early', string.format('%.0f', left)}
end

local function run()
  local idle_since = math.max(record.idle_since, record.fire)
  local fence, waited = math.max(record.fence + 1, now), math.max(0, now - idle_since)
  if record.state == 'sent' then reckon('reopened') end
  redis.call('HSET', slot.record, 'state', 'running', 'fence', fence, 'token', token, 'worker', worker, 'began', now)
  redis.call('HDEL', slot.record, 'waits', 'unsent', 'before', 'ended', 'why')
  set_deadline(slot, record.terms, now + record.terms.lease)
  return {'run', fence, record.spent + 1, record.text, waited}
end

local function end_as(state, why, word)
  close(slot, record.terms, state, why)
  return {word}
end

local function begin_running()
  local is_own_retry = from_fence == string.format('%.0f', record.fence)
  local deadline = tonumber(redis.call('ZSCORE', KEYS[OPEN], slot.key) or 0)
  if deadline > now and not is_own_retry then return {'busy'} end
  if is_removed(slot, record.version) then
    if is_own_retry then return end_as('missed', REMOVED, 'over') end
    return end_as('lost', 'its worker ' .. record.worker .. ' fell silent, and ' .. REMOVED, 'lost')
  end
  if is_own_retry then
    remember(slot, 'the run by ' .. record.worker .. ' sent its own retry', record.began)
    return run()
  end
  if not record.terms.complete then return end_as('lost', 'its worker ' .. record.worker .. ' fell silent', 'lost') end
  record.spent = record.spent + 1
  redis.call('HSET', slot.record, 'spent', record.spent)
  remember(slot, 'the worker ' .. record.worker .. ' fell silent, attempt ' .. record.spent, record.began)
  if record.spent >= record.terms.max_attempts then
    return end_as('dead', 'attempts spent: its workers fell silent', 'over')
  end
  return run()
end

local function begin_without_record()
  if tonumber(slip.fire) + slip.terms.retention < now then return {'expired'} end
  if is_removed(slot, slip.version) then return {'over'} end
  local fire = tonumber(slip.fire)
  local wait = early(fire)
  if wait then return wait end
  if not slip.terms.complete and is_missed(slot, fire) then return {'over'} end
  record, wrong = anew(slot, slip, worker)
  if wrong then return {'broken', wrong} end
  if slip.terms.complete then return run() end
  return end_as('lost', 'Redis lost the record, and nobody can say whether it had begun', 'lost')
end

if wrong then return {'broken', wrong} end
if redis.call('EXISTS', slot.done) == 1 then return {'done'} end
if not record then
  if not slip then return {'broken', 'no record, and the message says no terms'} end
  return begin_without_record()
end

local state = record.state
if state == 'running' and record.token == token then
  set_deadline(slot, record.terms, now + record.terms.lease) -- who asks again counts its lease from this question on
  return {'run', record.fence, record.spent + 1, record.text}
end
if state == 'done' then return {'done'} end
if ENDED_STATES[state] and state ~= 'sent' then return {'over'} end
if state ~= 'running' and is_removed(slot, record.version) then return end_as('missed', REMOVED, 'over') end
if record.fence == 0 then
  local wait = early(record.fire)
  if wait then return wait end
  if is_paused(slot.job) then return end_as('skipped', 'paused', 'skipped') end
  if record.terms.expires > 0 and now > record.fire + record.terms.expires then
    return end_as('skipped', 'expired before its first begin', 'skipped')
  end
end
if state == 'held' then return {'busy'} end
if state == 'running' then return begin_running() end
if state == 'postponed' or state == 'failed' then
  if from_fence ~= 'any' and from_fence ~= string.format('%.0f', record.fence) then return {'busy'} end
end
return run()
