-- record.lua: what the verbs about slots share; the loader puts it before each of them.
--
-- KEYS[1] epoch   KEYS[2] open   KEYS[3] dead   KEYS[4] pauses   KEYS[5] tasks   KEYS[6] decided
-- KEYS[7] changes of the stored jobs (put.lua)   KEYS[8] counts
-- then one a slot: its key, by which the claim is named. Done marker, record and the index of the job's slots are named
-- after it here: they begin with the same namespace, so a hash tag there keeps them on the node of the key.
--
-- A read that fails (a key of another type, a damaged record) is the answer for that slot and nothing is written
-- for it; so every function here reads and judges before its first write.

local EPOCH, OPEN, DEAD, PAUSES, TASKS, DECIDED, CHANGES, COUNTS, SHARED = 1, 2, 3, 4, 5, 6, 7, 8, 8
local MINUTE, HOUR, DAY = 60000, 3600000, 86400000
local GUARDED_FOR, KEEP_DEAD, KEEP_EVENTS = 90 * DAY, 90 * DAY, 20
-- A claimed slot's keys live for this and for its wait in the queue besides, so that confirm has nothing to do for them.
local LATE_CONFIRM = HOUR
local OPEN_STATES = {claimed = true, held = true, queued = true, running = true, postponed = true, failed = true}
local ENDED_STATES = {sent = true, done = true, dead = true, lost = true, skipped = true, missed = true}

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- The tail of a key is 2026-10-02T03:00 or 2026-10-02T03:00:30, perhaps with a mark, "~...". By its bytes, since a
-- pattern would cost a burst more than anything else here.
local COLON, T = string.byte(':T', 1, 2)
local function tail_length(key)
  if string.byte(key, -3) == COLON then return string.byte(key, -6) == T and 16 or 19 end
  return string.len(string.match(key, '%d%d%d%d%-%d%d%-%d%dT[%d:]+~[%w.-]+$') or key)
end

-- A text that is no slot key may have strayed among the open slots; it has no record.
local BEHIND_NAMESPACE = string.len(KEYS[EPOCH]) - string.len('epoch') + 1
local function slot_at(i)
  local key = KEYS[SHARED + i]
  local tail = tail_length(key)
  local prefix = string.sub(key, 1, -tail - 1)
  return {
    key = key, claim = key, done = key .. ':done', record = key .. ':record', index = prefix .. 'slots',
    job = string.sub(prefix, BEHIND_NAMESPACE, -2), tail = string.sub(key, -tail),
  }
end

-- The policy, from its text: see slotqueue.jobs.Terms. nil where the text is damaged.
local parsed = {}
local function terms_of(text)
  local terms = parsed[text]
  if terms then return terms end
  local words, numbers = {}, {}
  for word in string.gmatch(text or '', '%S+') do words[#words + 1] = word end
  for i = 4, 11 do
    numbers[i] = tonumber(words[i])
    if not numbers[i] then return nil end
  end
  terms = {
    complete = words[1] == 'c', again = words[2] == 'a', overlap = string.sub(words[3], 1, 1),
    max_held = tonumber(string.sub(words[3], 2)) or 1, lease = numbers[4], requeue = numbers[5],
    max_attempts = numbers[6], retention = numbers[7], history = numbers[8], expires = numbers[9],
    longest_wait = numbers[11],
  }
  parsed[text] = terms
  return terms
end

-- The record of a slot. Returns it, or nil where there is none; or nil and what is wrong with it.
local function load(slot)
  local got = redis.pcall('HMGET', slot.record, 'state', 'n', 'fence', 'token', 'spent', 'terms', 'fire', 'start',
    'task', 'version', 'claimed', 'began', 'waits', 'unsent', 'before', 'worker', 'events')
  if got.err then return nil, got.err end
  if not got[1] then
    if redis.call('EXISTS', slot.record) == 1 then return nil, 'the record has no state' end
    return nil
  end
  local record = {
    state = got[1], n = tonumber(got[2] or 0), fence = tonumber(got[3] or 0), token = got[4],
    spent = tonumber(got[5] or 0), text = got[6], terms = got[6] and terms_of(got[6]), fire = tonumber(got[7] or ''),
    start = got[8] or got[7], task = got[9] or '', version = got[10] or '', unsent = got[14], before = got[15],
    worker = got[16] or '?',
  }
  local claimed, began, waits = tonumber(got[11] or 0), tonumber(got[12] or 0), tonumber(got[13] or 0)
  if not (OPEN_STATES[record.state] or ENDED_STATES[record.state]) then
    return nil, 'the record has a state that this version does not know: ' .. record.state
  end
  local is_sound = record.n and record.fence and record.spent and record.terms and record.fire and claimed and began
    and waits and string.find(got[17] or '0', '^%d+$')
  if not is_sound then return nil, 'the record is damaged' end
  record.began, record.idle_since = began, math.max(claimed, began, waits)
  return record
end

-- Lengthen a key's life to `ms` from now; never shorten it.
local function live(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end

-- A job whose slots must not overlap keeps two sets of tails of keys: `out`, by deadline, and `held`, by fire time.
-- They are hints: overlap.lua believes the records. So a set of another type is replaced, and one that is lost made anew.
local function set_of(slot, word)
  local prefix = string.sub(slot.index, 1, -6)
  return prefix .. word, string.sub(slot.key, string.len(prefix) + 1)
end

local function list(slot, word, score, life)
  local set, tail = set_of(slot, word)
  local listed = redis.pcall('ZADD', set, score, tail)
  if type(listed) == 'table' then
    if string.find(listed.err, 'WRONGTYPE', 1, true) then redis.call('DEL', set) end
    redis.call('ZADD', set, score, tail)
  end
  live(set, life)
end

local function delist(slot, word)
  local set, tail = set_of(slot, word)
  redis.pcall('ZREM', set, tail)
end

-- An open slot: its deadline, and lives that outlast it by the retention.
local function set_deadline(slot, terms, deadline)
  local life = deadline - now + terms.retention
  if terms.overlap ~= 'a' then list(slot, 'out', deadline, life) end
  redis.call('ZADD', KEYS[OPEN], deadline, slot.key)
  live(KEYS[OPEN], life)
  redis.call('PEXPIRE', slot.claim, life)
  redis.call('PEXPIRE', slot.record, life)
end

-- The same for the slots of a batch, in fewer calls: the index of open slots is written by write_deadlines, at the end.
local deadlines, longest_life = {}, 0
local function open_until(key, terms, deadline)
  local life, size = deadline - now + terms.retention, #deadlines
  deadlines[size + 1], deadlines[size + 2] = deadline, key
  if life > longest_life then longest_life = life end
  return life
end

local function batch_deadline(slot, terms, deadline)
  local life = open_until(slot.key, terms, deadline)
  if terms.overlap ~= 'a' then list(slot, 'out', deadline, life) end
  return life
end

local function write_deadlines()
  local some = 2000
  for i = 1, #deadlines, some do
    redis.call('ZADD', KEYS[OPEN], unpack(deadlines, i, math.min(i + some - 1, #deadlines)))
  end
  if #deadlines > 0 then live(KEYS[OPEN], longest_life) end
end

-- How long the message of enqueue n may lie in its queue before the slot is enqueued again.
local function wait_in_queue(terms, n)
  if terms.requeue <= 0 then return terms.retention end
  return math.min(terms.requeue * 2 ^ math.min(n, 30), math.max(terms.longest_wait, terms.requeue))
end

-- What a batch answers: how often, and what, again and again: of a burst most is the same word.
local said = {}
local function say(word)
  local size = #said
  if said[size] == word then
    said[size - 1] = said[size - 1] + 1
  else
    said[size + 1], said[size + 2] = 1, word
  end
end

-- What the whole namespace has decided since it began: "claimed", "reopened" (an ended slot was brought back, a missed
-- one of a gap too, or finished all the same), and "<state> <job>" for each end. A slot that is not reopened ends in
-- exactly one of these.
local function reckon(field, n)
  local total = redis.pcall('HINCRBY', KEYS[COUNTS], field, n or 1)
  if type(total) == 'number' and total % 128 < (n or 1) + 1 then redis.pcall('PEXPIRE', KEYS[COUNTS], 365 * DAY) end
end

-- An ended slot leaves the open ones; claim and record go on to say so.
local function close(slot, terms, state, why)
  redis.call('ZREM', KEYS[OPEN], slot.key)
  if terms.overlap ~= 'a' then
    delist(slot, 'out')
    delist(slot, 'held')
  end
  redis.call('HDEL', slot.record, 'token', 'unsent', 'before', 'waits')
  redis.call('HSET', slot.record, 'state', state, 'ended', now)
  if why then redis.call('HSET', slot.record, 'why', why) end
  reckon(state .. ' ' .. slot.job)
  local life = terms.history
  if state == 'dead' or state == 'lost' then
    life = math.max(life, KEEP_DEAD)
    redis.call('ZADD', KEYS[DEAD], now, slot.key)
    redis.call('ZREMRANGEBYSCORE', KEYS[DEAD], '-inf', now - life)
    live(KEYS[DEAD], life)
  end
  redis.call('PEXPIRE', slot.record, life)
  redis.call('PEXPIRE', slot.claim, math.max(terms.retention, 1))
end

-- What is about to be overwritten and somebody will ask for: "past.<i>" = "<ms> <text>", the newest 20; where a run
-- ended by it, "<ms>,<when the run began> <text>".
local function remember(slot, text, began)
  local i, at = redis.call('HINCRBY', slot.record, 'events', 1), string.format('%.0f', now)
  if began and began > 0 then at = at .. ',' .. string.format('%.0f', began) end
  redis.call('HSET', slot.record, 'past.' .. i, at .. ' ' .. string.sub(text, 1, 200))
  if i > KEEP_EVENTS then redis.call('HDEL', slot.record, 'past.' .. (i - KEEP_EVENTS)) end
end

-- One attempt is spent by a final failure: dead, or failed and due again later.
local function strike(slot, record, why, text)
  local terms, spent = record.terms, record.spent + 1
  redis.call('HSET', slot.record, 'spent', spent, 'error', string.sub(text, 1, 1024))
  if terms.again and spent < terms.max_attempts then
    local began = record.state == 'running' and record.began
    remember(slot, why .. ', attempt ' .. spent .. ' of ' .. terms.max_attempts .. ': ' .. text, began)
    redis.call('HDEL', slot.record, 'token')
    redis.call('HSET', slot.record, 'state', 'failed', 'waits', now)
    set_deadline(slot, terms, now + math.min(5 * MINUTE * 2 ^ math.min(spent - 1, 30), terms.longest_wait))
    return 'failed'
  end
  close(slot, terms, 'dead', terms.again and 'attempts spent: ' .. why or why)
  return 'dead'
end

-- What is wrong with the index of the slot's job, nil where nothing is: asked before the first write.
local function index_problem(slot)
  local answer = redis.pcall('ZSCORE', slot.index, '')
  return type(answer) == 'table' and answer.err or nil
end

-- Whether a slot of the schedule lies in a gap that was recorded: then it is decided, and counted, as missed.
local function is_missed(slot, fire)
  local gaps = redis.pcall('LRANGE', string.sub(slot.index, 1, -6) .. 'missed', 0, -1)
  for _, gap in ipairs(gaps.err and {} or gaps) do
    local after, till = string.match(gap, '^(%d+) (%d+) ')
    if after and fire > tonumber(after) and fire <= tonumber(till) then
      return not string.find(slot.tail, '~', 1, true)
    end
  end
  return false
end

-- Count a slot that gets a record: for the first time, or after it had ended as missed.
local function reckon_record(slot, fire) reckon(is_missed(slot, fire) and 'reopened' or 'claimed') end

-- A record that Redis lost, made anew from what a message carries. `slip` as in slip_at.
-- Returns it, or nil and what stands in the way.
local function anew(slot, slip, by)
  local wrong = index_problem(slot)
  if wrong then return nil, wrong end
  redis.call('SET', slot.claim, by, 'NX', 'PX', slip.terms.retention)
  redis.call('HSET', slot.record, 'state', 'queued', 'by', by, 'claimed', now, 'n', slip.n, 'fire', slip.fire,
    'start', slip.start, 'task', slip.task, 'version', slip.version, 'terms', slip.text)
  redis.call('ZADD', slot.index, slip.fire, slot.tail)
  live(slot.index, math.max(slip.terms.history, KEEP_DEAD))
  remember(slot, 'Redis had lost the record; made anew by ' .. by)
  reckon_record(slot, tonumber(slip.fire))
  return {
    state = 'queued', n = tonumber(slip.n), fence = 0, spent = 0, text = slip.text, terms = slip.terms,
    fire = tonumber(slip.fire), start = slip.start, task = slip.task, version = slip.version, idle_since = now,
    worker = '?',
  }
end

-- What a message says of its slot, six arguments from `at`: n, fire, start, task, version, terms.
-- nil where the terms are damaged.
local function slip_at(at)
  local terms = terms_of(ARGV[at + 5])
  if not terms then return nil end
  return {
    n = ARGV[at], fire = ARGV[at + 1], start = ARGV[at + 2], task = ARGV[at + 3], version = ARGV[at + 4],
    text = ARGV[at + 5], terms = terms,
  }
end

local function is_guarded(task)
  local seen = redis.call('ZSCORE', KEYS[TASKS], task)
  return seen and tonumber(seen) >= now - GUARDED_FOR
end

-- Until when a job or all of them ("*") are or were paused, ms, 0 for ever; nil where there is no pause. Few pauses are
-- read once for all slots of a batch.
local tills, has_all_tills
local function till_of(name)
  if not tills then
    local size = redis.call('HLEN', KEYS[PAUSES])
    tills, has_all_tills = {}, size <= 200
    local all = has_all_tills and size > 0 and redis.call('HGETALL', KEYS[PAUSES]) or {}
    for i = 1, #all, 2 do tills[all[i]] = tonumber(all[i + 1]) end
  end
  if has_all_tills then return tills[name] end
  return tonumber(redis.call('HGET', KEYS[PAUSES], name) or '')
end

-- Whether a job is paused now, alone or with all. With a fire time, also whether there was a pause that is over and
-- into which that fell: no replica may have been there to skip the slot then.
local function is_paused(job, fire)
  for _, name in ipairs({job, '*'}) do
    local till = till_of(name)
    if till and (till == 0 or till > now) then return true end
    if till and fire and fire <= till then
      local said = redis.call('HGET', string.sub(KEYS[PAUSES], 1, -7) .. 'pausers', name) or ''
      local since = tonumber(string.match(said, '^%d+') or '')
      if since and fire > since then return true end
    end
  end
  return false
end

local REMOVED = 'its job was removed'

-- A slot that was claimed for a stored job has that job's version in its record, "s<version>" (put.lua).
local function stored_version(version)
  return tonumber(string.match(version, '^s(%d+)$') or '')
end

-- Whether its stored job was removed since, also where one of that name was stored anew.
local function is_removed(slot, version)
  local mine = stored_version(version)
  if not mine then return false end
  local job = string.match(slot.key, '^[^:]*:(.+):%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d')
  return (tonumber(redis.call('ZSCORE', KEYS[CHANGES], '-' .. (job or '')) or '') or 0) > mine
end
