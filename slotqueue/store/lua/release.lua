-- release.lua: the queue refused the messages of these slots, or may have, or gives them back unrun.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV     three a slot: the enqueue number n, "1" where the message may have arrived all the same, the problem
--
-- Only from (claimed, n), and from (queued, n) where the queue gives back what it had accepted. Claim and record stay,
-- or the slot would be won a second time; any replica's sweep takes it up: what was given back at once, what was
-- refused after a backoff of 1 s, doubling to 1 min. Returns an answer a slot: "released", "stale" or {"broken", what}.

local function release(slot, n, may_be_sent, problem)
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if not record or record.n ~= n then return 'stale' end
  local is_given_back = record.state == 'queued'
  if not is_given_back and record.state ~= 'claimed' then return 'stale' end
  redis.call('HSET', slot.record, 'state', 'claimed', 'error', string.sub(problem, 1, 1024))
  if may_be_sent == '1' then
    redis.call('HDEL', slot.record, 'unsent')
  else
    redis.call('HSET', slot.record, 'unsent', 1)
  end
  remember(slot, (is_given_back and 'the queue gave it back: ' or 'the queue refused it: ') .. problem)
  local backoff = is_given_back and 0 or math.min(1000 * 2 ^ math.min(n, 30), MINUTE)
  set_deadline(slot, record.terms, now + backoff)
  return 'released'
end

local answers = {}
for i = 1, #ARGV / 3 do
  local at = (i - 1) * 3
  answers[i] = release(slot_at(i), tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3])
end
return answers
