-- by_hand.lua: how an operator's slot goes out. Put behind overlap.lua.
--
-- No code is needed: the slot is `claimed` with its deadline passed, so that the next sweep of any replica that knows
-- the job enqueues it, with the arguments of the job as that replica knows it.

-- The policy of a slot that is wanted however late it is: without `expires`.
local function unexpiring(text)
  local at = 0
  return (string.gsub(text, '%S+', function(word)
    at = at + 1
    return at == 9 and '0' or word
  end))
end

-- What keeps an operator's slot from going out: a word and a text; nil where nothing does. Writes nothing.
local function stopped(slot, job, terms, fire)
  if is_paused(job) then return 'paused', '' end
  if terms.overlap == 'a' then return nil end
  local word, why = gate(slot, terms, fire)
  if word == 'skipped' then return 'busy', string.sub(why, 10) end
  return nil
end

-- Claimed or held, as the others of its job stand. `n` is a number that no queue is given: the sweep counts one on.
local function send_out(slot, terms, fire, before, n)
  redis.call('HSET', slot.record, 'state', 'claimed', 'n', n, 'waits', now, 'unsent', 1, 'before', before)
  redis.call('PEXPIRE', slot.record, terms.retention)  -- an ended one lives longer than the index of open slots may
  redis.call('ZADD', slot.index, fire, slot.tail)
  live(slot.index, math.max(terms.history, KEEP_DEAD))
  if terms.overlap ~= 'a' then
    local word, why, other = gate(slot, terms, fire)
    if word then return put_behind(slot, terms, fire, word, why, other) end
  end
  redis.call('HINCRBY', slot.record, 'spared', 1)
  set_deadline(slot, terms, now)
  return {'claimed', ''}
end
