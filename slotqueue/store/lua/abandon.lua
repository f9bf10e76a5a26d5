-- abandon.lua: an operator gives open slots of a forgotten job up, but for those that a worker may be running.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV[1]  who   then one a slot: its job
--
-- Returns an answer a slot, {word, detail}: "missed", "running" or "postponed" (left as they are), "gone" or "broken".

local function abandon(slot, job)
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if not record or not OPEN_STATES[record.state] then
    redis.call('ZREM', KEYS[OPEN], slot.key)
    return {'gone', ''}
  end
  if record.state == 'running' or record.state == 'postponed' then return {record.state, record.worker} end
  close(slot, record.terms, 'missed', 'the job ' .. job .. ' was forgotten by ' .. ARGV[1])
  return {'missed', ''}
end

local answers = {}
for i = 1, #ARGV - 1 do answers[i] = abandon(slot_at(i), ARGV[i + 1]) end
return answers
