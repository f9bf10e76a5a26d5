-- forget.lua: an operator has a job forgotten that no replica knows any more.
--
-- KEYS[1]  jobs   hash  job -> "version:since:seen:uptime ..."   KEYS[2..4]  other keys of the job: gaps, out, held
-- KEYS[5..]  hashes with a field a job   ARGV[1]  job   ARGV[2]  ms: seen within, it is still known
--
-- Returns {word, ms since it was last seen}: "forgotten", "known" (a replica said lately that it knows it: nothing was
-- written) or "missing".

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local entry = redis.call('HGET', KEYS[1], ARGV[1])
if not entry then return {'missing', 0} end
local newest = 0
for seen in string.gmatch(entry, '%w+:%d+:(%d+)') do newest = math.max(newest, tonumber(seen)) end
if now - newest < tonumber(ARGV[2]) then return {'known', now - newest} end
redis.call('HDEL', KEYS[1], ARGV[1])
for i = 2, 4 do redis.call('DEL', KEYS[i]) end
for i = 5, #KEYS do redis.call('HDEL', KEYS[i], ARGV[1]) end
return {'forgotten', now - newest}
