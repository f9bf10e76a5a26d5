-- vouch.lua: a replica remembers that guarded workers run these tasks, and Redis has lost its data.
--
-- KEYS[1]  tasks  zset  task -> when a guarded worker was seen
-- ARGV     the tasks
--
-- Without it, slots that are offered again before the workers have enlisted anew would be sent and never followed.
-- A task that is there is left as it is. Returns now.

local DAY = 86400000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

for i = 1, #ARGV do redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], 91 * DAY)
return now
