-- leave.lua: a replica or a worker goes on purpose. Its tasks stay guarded: others run them.
--
-- KEYS[1]  replicas   KEYS[2]  workers   ARGV[1]  its id
--
-- Returns how many entries were removed.

return redis.call('HDEL', KEYS[1], ARGV[1]) + redis.call('HDEL', KEYS[2], ARGV[1])
