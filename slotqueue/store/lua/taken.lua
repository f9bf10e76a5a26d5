-- taken.lua: how many of these slots are claimed. Cheaper than to lose each of them.
--
-- KEYS  one a slot: its key

local taken, some = 0, 5000
for first = 1, #KEYS, some do
  taken = taken + redis.call('EXISTS', unpack(KEYS, first, math.min(first + some - 1, #KEYS)))
end
return taken
