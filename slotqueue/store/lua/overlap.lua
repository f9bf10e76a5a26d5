-- overlap.lua: what stands in the way of a slot whose job lets no two be out at once. Put behind record.lua.
--
-- "Out" is open and not held. Another slot that is out is in the way, whichever of the two is the earlier one; and of
-- those that are held the oldest goes first. The sets `out` and `held` of a job are hints, so what they say is judged by
-- the record and by the index of open slots: a record that is gone, has ended or is damaged is in nobody's way.
--
-- The keys of other slots of the job are made here, since nobody can name them beforehand.

local LOOKED_BACK, LOOK_AGAIN_AT_HELD = 100, 1000

-- Where a slot of the same job stands: "held", or another open state; nil where it is not open.
local function standing_of(prefix, tail)
  local key = prefix .. tail
  local record = load({key = key, record = key .. ':record'})
  if not record or not OPEN_STATES[record.state] then return nil end
  local deadline = redis.call('ZSCORE', KEYS[OPEN], key)
  return deadline and record.state, record.fire, deadline
end

-- A set `out` that is lost, or not there yet because the policy was another, is made anew from the newest slots on
-- record. The empty member says that this was done: a slot that goes on may have begun the set again with itself alone.
local function mend_sets(slot, terms)
  local out, prefix = set_of(slot, 'out'), string.sub(slot.index, 1, -6)
  local kind = redis.call('TYPE', out).ok
  if kind == 'zset' and redis.call('ZSCORE', out, '') then return end
  if kind ~= 'none' and kind ~= 'zset' then redis.call('DEL', out) end
  local tails = redis.pcall('ZREVRANGE', slot.index, 0, LOOKED_BACK - 1)
  for _, tail in ipairs(tails.err and {} or tails) do
    local state, fire, deadline = standing_of(prefix, tail)
    if state == 'held' then
      list({index = slot.index, key = prefix .. tail}, 'held', fire, terms.retention)
    elseif state then
      redis.call('ZADD', out, deadline, tail)
    end
  end
  redis.call('ZADD', out, 0, '')
  live(out, terms.retention)
end

-- The first other slot in a set that stands there in truth: its key, state and fire time; nil where there is none. What
-- does not is taken out of the set on the way.
local function first_in(slot, word)
  local set, own = set_of(slot, word)
  local prefix, at = string.sub(slot.index, 1, -6), 0
  while true do
    local found = redis.pcall('ZRANGE', set, at, at)
    if found.err or not found[1] then return nil end
    local tail = found[1]
    if tail == '' or tail == own then
      at = at + 1
    else
      local state, fire = standing_of(prefix, tail)
      if state and (state == 'held') == (word == 'held') then return prefix .. tail, state, fire end
      redis.call('ZREM', set, tail)
    end
  end
end

-- Whether as many slots of the job are held as may be; those that are not held any more are taken out of the set.
local function is_full(slot, terms)
  local set = set_of(slot, 'held')
  local count = redis.pcall('ZCARD', set)
  if type(count) == 'table' or count < terms.max_held then return false end
  local prefix = string.sub(slot.index, 1, -6)
  for _, tail in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    if standing_of(prefix, tail) ~= 'held' then redis.call('ZREM', set, tail) end
  end
  return redis.call('ZCARD', set) >= terms.max_held
end

-- The slot in the way of this one, and its state; nil where nothing is.
local function in_the_way(slot, terms, fire)
  mend_sets(slot, terms)
  local other, state, its_fire = first_in(slot, 'out')
  if other or terms.overlap ~= 'h' then return other, state end
  other, state, its_fire = first_in(slot, 'held')
  if other and (its_fire < fire or its_fire == fire and other < slot.key) then return other, state end
  return nil
end

-- What becomes of a slot that is about to go out: nil where it may; else "held" or "skipped", why, and what is in the way.
local function gate(slot, terms, fire)
  local other, state = in_the_way(slot, terms, fire)
  if not other then return nil end
  local why = 'overlap: ' .. other .. ' was ' .. state
  if terms.overlap == 'f' then return 'skipped', why, other end
  if is_full(slot, terms) then
    return 'skipped', 'overlap: ' .. terms.max_held .. ' slots were held already, and ' .. other .. ' was ' .. state, other
  end
  return 'held', why, other
end

-- A held slot waits for the next sweep; its keys live on with it.
local function keep_held(slot, terms, fire)
  local life = LOOK_AGAIN_AT_HELD + terms.retention
  list(slot, 'held', fire, life)
  redis.call('ZADD', KEYS[OPEN], now + LOOK_AGAIN_AT_HELD, slot.key)
  for _, key in ipairs({KEYS[OPEN], slot.claim, slot.record}) do live(key, life) end
end

-- A new slot that may not go out: it is held or skipped, behind another. Returns the answer about it.
local function put_behind(slot, terms, fire, word, why, other)
  redis.call('HSET', slot.record, 'behind', other)
  if word == 'skipped' then
    close(slot, terms, 'skipped', why)
  else
    redis.call('HSET', slot.record, 'state', 'held')
    redis.call('HINCRBY', slot.record, 'spared', 1)
    remember(slot, 'held: ' .. string.sub(why, 10))
    keep_held(slot, terms, fire)
  end
  return {word, why}
end
