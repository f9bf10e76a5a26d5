-- postpone.lua: the run is handed back cleanly; the worker system itself will run the slot again, or the sweep shall.
--
-- KEYS     the shared ones, then the slot's (record.lua)
-- ARGV[1]  fence   ARGV[2]  in how many ms   ARGV[3]  why   ARGV[4]  "1" where no message is left and the sweep shall
--
-- Only while running. The sweep steps in at that time, or 5 min after it. Returns "yes", "stale" or {"broken", what}.

local slot = slot_at(1)
local record, wrong = load(slot)
if wrong then return {'broken', wrong} end
if not record or record.state ~= 'running' or record.fence ~= tonumber(ARGV[1]) then return 'stale' end
local due = now + tonumber(ARGV[2])
remember(slot, 'handed back by ' .. record.worker .. ': ' .. ARGV[3], record.began)
redis.call('HDEL', slot.record, 'token')
redis.call('HSET', slot.record, 'state', 'postponed', 'waits', due)
set_deadline(slot, record.terms, ARGV[4] == '1' and due or due + 5 * MINUTE)
return 'yes'
