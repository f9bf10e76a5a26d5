-- finish.lua: the run is over and well: done marker, record and index in one step.
--
-- KEYS     the shared ones, then the slot's (record.lua)
-- ARGV[1]  fence   ARGV[2]  worker   ARGV[3..8]  what the message says: n, fire time, start, task, version, terms
--
-- The newest fence may finish whatever became of the slot meanwhile: the work is done. Said again, "yes" again.
-- Returns "yes", "stale" or {"broken", what}.

local fence, worker = tonumber(ARGV[1]), ARGV[2]
local slot = slot_at(1)
local slip = slip_at(3)
local record, wrong = load(slot)

if wrong then return {'broken', wrong} end
if not record then
  if redis.call('EXISTS', slot.done) == 1 then return 'yes' end
  if not slip then return {'broken', 'no record, and the message says no terms'} end
  record, wrong = anew(slot, slip, worker)
  if wrong then return {'broken', wrong} end
  record.state, record.fence = 'running', fence
  redis.call('HSET', slot.record, 'fence', fence, 'worker', worker)
end
if record.fence ~= fence then return 'stale' end
if record.state == 'done' then return 'yes' end
redis.call('SET', slot.done, worker, 'PX', record.terms.retention)
if record.state == 'dead' or record.state == 'lost' then redis.call('ZREM', KEYS[DEAD], slot.key) end
if ENDED_STATES[record.state] then reckon('reopened') end
if record.state ~= 'running' then remember(slot, 'finished by ' .. worker .. ' although it was ' .. record.state) end
redis.call('HDEL', slot.record, 'why', 'error')
close(slot, record.terms, 'done')
return 'yes'
