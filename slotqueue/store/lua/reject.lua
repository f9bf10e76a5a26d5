-- reject.lua: the message of enqueue n ended without a run: unknown task, revoked, a failed result without a hook.
--
-- KEYS     the shared ones, then the slot's (record.lua)
-- ARGV[1]  n   ARGV[2]  why
--
-- Only from claimed, queued and postponed, by that very enqueue.
-- Returns "dead", "failed" (another attempt is due), "stale" or {"broken", what}.

local slot = slot_at(1)
local record, wrong = load(slot)
if wrong then return {'broken', wrong} end
if not record or record.n ~= tonumber(ARGV[1]) then return 'stale' end
if record.state ~= 'claimed' and record.state ~= 'queued' and record.state ~= 'postponed' then return 'stale' end
return strike(slot, record, 'rejected by the worker system', ARGV[2])
