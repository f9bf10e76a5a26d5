-- discard.lua: an operator takes dead letters from the list. Their records stay for their history, and say so.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV[1]  who   then one a slot: what was looked at, "dead" or "lost"
--
-- Returns an answer a slot, {word, detail}: "discarded", "missing" (it was no dead letter any more), or "broken" (what):
-- a letter whose record is gone or damaged is taken from the list all the same.

local function discard(slot)
  if redis.call('ZREM', KEYS[DEAD], slot.key) == 0 then return {'missing', ''} end
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if record then
    remember(slot, 'discarded by ' .. ARGV[1])
    redis.call('PEXPIRE', slot.record, record.terms.history)
  end
  return {'discarded', ''}
end

local answers = {}
for i = 1, #ARGV - 1 do answers[i] = discard(slot_at(i)) end
return answers
