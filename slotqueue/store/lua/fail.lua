-- fail.lua: the worker system gave the run up.
--
-- KEYS     the shared ones, then the slot's (record.lua)
-- ARGV[1]  fence, "" where only the token is known   ARGV[2]  token   ARGV[3]  error
--
-- Only while running, so that a crash and its late report spend one attempt together.
-- Returns "dead", "failed" (another attempt is due), "stale" or {"broken", what}.

local slot = slot_at(1)
local record, wrong = load(slot)
if wrong then return {'broken', wrong} end
if not record or record.state ~= 'running' then return 'stale' end
if ARGV[1] ~= '' then
  if record.fence ~= tonumber(ARGV[1]) then return 'stale' end
elseif record.token ~= ARGV[2] then
  return 'stale'
end
return strike(slot, record, 'failed in ' .. record.worker, ARGV[3])
