-- open_keys.lua: a stretch of the open slots, by deadline.
--
-- KEYS[1]  open slots   zset   ARGV[1], ARGV[2]  first and last rank
--
-- Returns slot keys.

return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2])
