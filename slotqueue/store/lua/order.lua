-- order.lua: an operator wants slots that nobody has decided: of the past, or with a mark of their own.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV[1]  who   ARGV[2]  how that is said: "triggered", "backfilled", ...
-- then six a slot: job, fire time ms, start of the interval ms, task, version, terms
--
-- Returns an answer a slot, {word, detail}: "claimed" (the next sweep enqueues it), "held" (behind which slot); or
-- where nothing was written: "busy" (what is in the way), "paused", "taken" (its state, "" without a record), "early" or
-- "broken" (what).

local who, said = ARGV[1], ARGV[2]

local function order(slot, job, fire_ms, start_ms, task, version, text)
  local record, wrong = load(slot)
  wrong = wrong or index_problem(slot)
  if wrong then return {'broken', wrong} end
  if record then return {'taken', record.state} end
  if redis.call('EXISTS', slot.done) == 1 then return {'taken', 'done'} end
  if redis.call('EXISTS', slot.claim) == 1 then return {'taken', ''} end
  text = unexpiring(text)
  local fire, terms = tonumber(fire_ms), terms_of(text)
  if not terms then return {'broken', 'the terms are damaged: ' .. text} end
  if fire > now then return {'early', ''} end
  local word, why = stopped(slot, job, terms, fire)
  if word then return {word, why} end

  redis.call('SET', slot.claim, who, 'PX', terms.retention)
  redis.call('HSET', slot.record, 'by', who, 'claimed', now, 'fire', fire_ms, 'start', start_ms, 'task', task,
    'version', version, 'terms', text)
  remember(slot, said .. ' by ' .. who)
  reckon_record(slot, fire)
  return send_out(slot, terms, fire, 'ordered', 0)
end

local answers = {}
for i = 1, (#ARGV - 2) / 6 do answers[i] = order(slot_at(i), unpack(ARGV, i * 6 - 3, i * 6 + 2)) end
return answers
