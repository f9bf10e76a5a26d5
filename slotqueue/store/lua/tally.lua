-- tally.lua: where slots stand, in a word each.
--
-- KEYS     records, one a slot
--
-- Returns the words with a blank between two: the state, then marks: ".late" done, but after done_within; ".overdue"
-- open, and done_within has passed; ".again" more than one attempt; ".expired" skipped because it came too late.
-- "none" where there is no record, "broken" where it is damaged.

local OPEN = {claimed = true, held = true, queued = true, running = true, postponed = true, failed = true}
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- The tenth word of the terms: see slotqueue.policy.Terms.
local parsed = {}
local function done_within_of(terms)
  if parsed[terms] == nil then
    parsed[terms] = tonumber(string.match(terms, '^%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%S+)') or '') or 0
  end
  return parsed[terms]
end

local function word_of(record)
  local got = redis.pcall('HMGET', record, 'state', 'fire', 'ended', 'spent', 'terms')
  if got.err then return 'broken' end
  local word, fire = got[1], tonumber(got[2] or '')
  if not word then return redis.call('EXISTS', record) == 1 and 'broken' or 'none' end
  if not fire then return 'broken' end
  local limit = fire + done_within_of(got[5] or '')
  if word == 'done' and (tonumber(got[3] or '') or 0) > limit then word = word .. '.late' end
  if OPEN[word] and now > limit then word = word .. '.overdue' end
  if word == 'skipped' then
    local why = redis.call('HGET', record, 'why') or ''
    if string.find(why, 'expired', 1, true) == 1 then word = word .. '.expired' end
  end
  if (tonumber(got[4] or '') or 0) > (got[1] == 'dead' and 1 or 0) then word = word .. '.again' end
  return word
end

local answers = {}
for i, record in ipairs(KEYS) do answers[i] = word_of(record) end
return table.concat(answers, ' ')
