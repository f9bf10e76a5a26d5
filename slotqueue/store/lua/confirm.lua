-- confirm.lua: the queue holds the messages of these slots.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV     one a slot: the enqueue number n
--
-- Only from (claimed, n): the worker may have been faster. Returns an answer a slot, equal ones as one (record.lua):
-- "queued", "sent" (no guarded worker has registered the task, so nobody will report), "stale" or {"broken", what}.

local guarded = {}
local function is_followed(task)
  if guarded[task] == nil then guarded[task] = is_guarded(task) or false end
  return guarded[task]
end

-- Whether a slot was claimed so lately that its keys live long enough (claim.lua), by when it was.
local lately = {}
local function is_lately(claimed)
  if lately[claimed] == nil then lately[claimed] = now <= (tonumber(claimed) or 0) + LATE_CONFIRM end
  return lately[claimed]
end

-- A slot to which nothing has happened since its claim, as those of a burst: a few fields of its record are enough.
-- Returns whether it was one, and is confirmed.
local function confirm_fresh(key, n)
  local name = key .. ':record'
  local got = redis.pcall('HMGET', name, 'state', 'n', 'terms', 'task', 'claimed', 'events')
  if got.err or got[1] ~= 'claimed' or got[2] ~= n or got[6] or not is_lately(got[5]) then return false end
  local terms = terms_of(got[3])
  if not terms or terms.overlap ~= 'a' or not is_followed(got[4] or '') then return false end
  redis.call('HSET', name, 'state', 'queued', 'queued', now)
  open_until(key, terms, now + wait_in_queue(terms, 0))
  return true
end

local function confirm(i, n)
  if confirm_fresh(KEYS[SHARED + i], n) then return 'queued' end
  local slot = slot_at(i)
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if not record or record.state ~= 'claimed' or record.n ~= tonumber(n) then return 'stale' end
  local terms = record.terms
  if not is_followed(record.task) then
    redis.call('HSET', slot.record, 'queued', now)
    close(slot, terms, 'sent')
    return 'sent'
  end
  redis.call('HSET', slot.record, 'state', 'queued', 'queued', now)
  if record.before or record.unsent then redis.call('HDEL', slot.record, 'before', 'unsent') end
  local life = batch_deadline(slot, terms, now + wait_in_queue(terms, record.n))
  live(slot.claim, life)
  live(slot.record, life)
  return 'queued'
end

redis.call('ZCARD', KEYS[OPEN]) -- a key of another type fails here, before anything is written

for i = 1, #ARGV do say(confirm(i, ARGV[i])) end
write_deadlines()
return said
