-- take_over.lua: open slots whose deadline has passed, by the record's own policy.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV[1]  replica   ARGV[2]  unbroken contact with this Redis, ms   ARGV[3]  grace for the enqueue, ms
-- then one a slot: the task that this replica would enqueue, "" where it does not know the job
--
-- Returns an answer a slot: {"enqueue", state before, n, fire time, start, task, version, terms}, or {word, detail}:
-- done, gone, unknown, missed, skipped, lost, dead, held (another slot is still out), later (not now, or somebody else
-- was faster), broken.

local replica, contact, grace = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local LOOK_AGAIN, LOOK_AGAIN_SOON = 5000, 1000
local BY_HAND = {ordered = true, dead = true, lost = true, skipped = true, missed = true} -- an operator's: by_hand.lua

-- What cannot be judged now makes room for the others that are due.
local function put_off(slot, ms, retention)
  redis.call('ZADD', KEYS[OPEN], now + ms, slot.key)
  live(KEYS[OPEN], ms + retention)
  live(slot.record, ms + retention)
  live(slot.claim, ms + retention)
end

local function end_as(slot, record, state, why)
  close(slot, record.terms, state, why)
  return {state, why}
end

local function enqueue_again(slot, record, task)
  local before, n = record.state, record.n + 1
  if before == 'claimed' then before = record.before or before end
  local said = before == 'held' and 'let go by ' or BY_HAND[before] and 'sent out by ' or 'taken over by '
  remember(slot, said .. replica .. (BY_HAND[before] and '' or ', was ' .. record.state))
  redis.call('HDEL', slot.record, 'token', 'unsent', 'waits')
  redis.call('HSET', slot.record, 'state', 'claimed', 'n', n, 'before', before, 'task', task, 'waits', record.idle_since)
  set_deadline(slot, record.terms, now + grace)
  return {'enqueue', before, n, record.fire, record.start, task, record.version, record.text}
end

local function take_over_running(slot, record, task)
  local terms = record.terms
  if not terms.complete then
    return end_as(slot, record, 'lost', 'its worker ' .. record.worker .. ' fell silent')
  end
  record.spent, record.idle_since = record.spent + 1, now
  redis.call('HSET', slot.record, 'spent', record.spent)
  remember(slot, 'the worker ' .. record.worker .. ' fell silent, attempt ' .. record.spent, record.began)
  if record.spent >= terms.max_attempts then
    return end_as(slot, record, 'dead', 'attempts spent: its workers fell silent')
  end
  return enqueue_again(slot, record, task)
end

-- Of the held ones the oldest goes out once no other slot is; what is in the way is kept in the record.
local function take_over_held(slot, record, task)
  local other, state = in_the_way(slot, record.terms, record.fire)
  if other then
    redis.call('HSET', slot.record, 'behind', other)
    keep_held(slot, record.terms, record.fire)
    return {'held', other .. ' is ' .. state}
  end
  delist(slot, 'held')
  redis.call('HDEL', slot.record, 'behind')
  return enqueue_again(slot, record, task)
end

local function take_over(slot, task)
  local deadline = redis.call('ZSCORE', KEYS[OPEN], slot.key)
  if not deadline or tonumber(deadline) > now then return {'later', 'somebody else was faster'} end
  local record, wrong = load(slot)
  if wrong then
    put_off(slot, 10 * MINUTE, DAY)
    return {'broken', wrong}
  end
  if not record or not OPEN_STATES[record.state] then
    redis.call('ZREM', KEYS[OPEN], slot.key)
    return {'gone', 'no record'}
  end
  if redis.call('EXISTS', slot.done) == 1 then return end_as(slot, record, 'done', 'it has a done marker') end

  local terms = record.terms
  local waited, missing_contact = now - record.idle_since >= terms.retention, terms.lease / 3 - contact
  if record.state == 'running' and missing_contact > 0 then
    put_off(slot, math.ceil(math.min(missing_contact, LOOK_AGAIN)), terms.retention)
    return {'later', 'contact with Redis is too young to judge a lease'}
  end
  if is_removed(slot, record.version) then
    if record.state ~= 'running' then return end_as(slot, record, 'missed', REMOVED) end
    return end_as(slot, record, 'lost', 'its worker ' .. record.worker .. ' fell silent, and ' .. REMOVED)
  end
  if task == '' then
    if waited then return end_as(slot, record, 'missed', 'no replica knows its job any more') end
    -- Another replica may know it, in a deploy for example: it shall come before this one does again. Once the slot has
    -- waited for long, it is looked at ever less often.
    local waits = math.floor((now - record.idle_since) / 10)
    put_off(slot, math.min(math.max(waits, LOOK_AGAIN_SOON), 10 * MINUTE), terms.retention)
    return {'unknown', 'this replica does not know the job'}
  end
  if waited and record.state ~= 'running' then
    return end_as(slot, record, 'missed', 'nothing took it up during its retention')
  end
  if record.fence == 0 and terms.expires > 0 and now > record.fire + terms.expires then
    return end_as(slot, record, 'skipped', 'expired before its first begin')
  end
  if record.state == 'running' then return take_over_running(slot, record, task) end
  if record.state == 'held' then return take_over_held(slot, record, task) end
  if record.state == 'claimed' and not terms.complete and not record.unsent and not is_guarded(record.task) then
    return end_as(slot, record, 'lost', 'its replica vanished, and nobody reports whether the message was sent')
  end
  return enqueue_again(slot, record, task)
end

local answers = {}
for i = 1, #ARGV - 3 do answers[i] = take_over(slot_at(i), ARGV[i + 3]) end
return answers
