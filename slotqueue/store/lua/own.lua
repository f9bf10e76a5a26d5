-- own.lua: an application says that the namespace is its own.
--
-- KEYS[1]  app  string  the application's name   ARGV[1]  a name
--
-- The first one keeps it; nobody has said it for 90 days: it is free. Returns whose it is.

local LIFE = 90 * 86400000
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', LIFE)
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then redis.call('PEXPIRE', KEYS[1], LIFE) end
return owner
