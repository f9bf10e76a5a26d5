-- confirm.lua: the queue holds the messages of these slots.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV     one a slot: the enqueue number n
--
-- Only from (claimed, n): the worker may have been faster. Returns an answer a slot: "queued", "sent" (no guarded
-- worker has registered the task, so nobody will report), "stale" or {"broken", what}.

local guarded = {}

local function confirm(slot, n)
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if not record or record.state ~= 'claimed' or record.n ~= n then return 'stale' end
  local terms = record.terms
  if guarded[record.task] == nil then guarded[record.task] = is_guarded(record.task) end
  if not guarded[record.task] then
    redis.call('HSET', slot.record, 'queued', now)
    close(slot, terms, 'sent')
    return 'sent'
  end
  redis.call('HSET', slot.record, 'state', 'queued', 'queued', now)
  if record.before or record.unsent then redis.call('HDEL', slot.record, 'before', 'unsent') end
  local wait = terms.retention
  if terms.requeue > 0 then
    wait = math.min(terms.requeue * 2 ^ math.min(n, 30), math.max(terms.longest_wait, terms.requeue))
  end
  local life = batch_deadline(slot, terms, now + wait)
  redis.call('PEXPIRE', slot.claim, life)
  redis.call('PEXPIRE', slot.record, life)
  return 'queued'
end

redis.call('ZCARD', KEYS[OPEN]) -- a key of another type fails here, before anything is written

local answers = {}
for i = 1, #ARGV do answers[i] = confirm(slot_at(i), tonumber(ARGV[i])) end
write_deadlines()
return answers
