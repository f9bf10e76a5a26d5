-- heartbeat.lua: keep the leases on running slots, where they are still ours.
--
-- KEYS     the shared ones, then one a slot (record.lua)
-- ARGV     nine a slot: fence, token, worker, then what the message says: n, fire time, start, task, version, terms
--
-- A lease that had passed is renewed all the same: nobody has taken it. A record that Redis lost is made anew.
-- Returns an answer a slot: "yes", "stale" or {"broken", what}.

local function beat(slot, fence, token, worker, slip)
  local record, wrong = load(slot)
  if wrong then return {'broken', wrong} end
  if not record then
    if not slip or redis.call('EXISTS', slot.done) == 1 then return 'stale' end
    -- Older than the retention: its done marker may have been there and gone.
    if tonumber(slip.fire) + slip.terms.retention < now then return 'stale' end
    record, wrong = anew(slot, slip, worker)
    if wrong then return {'broken', wrong} end
    record.state, record.fence = 'running', tonumber(fence)
    redis.call('HSET', slot.record, 'state', 'running', 'fence', fence, 'token', token, 'worker', worker, 'began', now)
  end
  if record.state ~= 'running' or record.fence ~= tonumber(fence) then return 'stale' end
  set_deadline(slot, record.terms, now + record.terms.lease)
  return 'yes'
end

local answers = {}
for i = 1, #ARGV / 9 do
  local at, slot = (i - 1) * 9, slot_at(i)
  answers[i] = beat(slot, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], slip_at(at + 4))
end
return answers
