-- retry.lua: an operator brings slots back that ended without being done: same id, attempts start anew.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV[1]  who   then one a slot: its job
--
-- Returns an answer a slot, {word, detail}: "claimed" (the next sweep enqueues it), "held" (behind which slot); or
-- where nothing was written: "busy" (what is in the way), "paused", "done", "sent", "open" (the state), "missing" or
-- "broken" (what).

local BACK = {dead = true, lost = true, skipped = true, missed = true}

local function retry(slot, job)
  local record, wrong = load(slot)
  wrong = wrong or index_problem(slot)
  if wrong then return {'broken', wrong} end
  if redis.call('EXISTS', slot.done) == 1 or record and record.state == 'done' then return {'done', ''} end
  if not record then return {'missing', ''} end
  if not BACK[record.state] then return {record.state == 'sent' and 'sent' or 'open', record.state} end
  local word, why = stopped(slot, job, record.terms, record.fire)
  if word then return {word, why} end

  local ended = redis.call('HMGET', slot.record, 'why', 'error')
  local text = unexpiring(record.text)
  redis.call('ZREM', KEYS[DEAD], slot.key)
  redis.call('HDEL', slot.record, 'why', 'error', 'ended', 'behind', 'spent')
  redis.call('HSET', slot.record, 'terms', text)
  redis.call('SET', slot.claim, ARGV[1], 'NX', 'PX', record.terms.retention)
  local told = 'retried by ' .. ARGV[1] .. ', was ' .. record.state
  if record.began > 0 then told = told .. ' after the run by ' .. record.worker end
  for i = 1, 2 do
    if ended[i] then told = told .. ': ' .. ended[i] end
  end
  remember(slot, told, record.began)
  reckon('reopened')
  return send_out(slot, terms_of(text), record.fire, record.state, record.n + 1)
end

local answers = {}
for i = 1, #ARGV - 1 do answers[i] = retry(slot_at(i), ARGV[i + 1]) end
return answers
