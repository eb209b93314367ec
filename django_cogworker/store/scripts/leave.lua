-- leave.lua: a worker that stops in good order takes its presence away.
--
-- KEYS  1 process hash   2 processes   3 beats   4 signal   5 workers hash   6 holders   7 tombstone   8 members
--       9 members of its host
-- ARGV  1 identity   2 TTL of the tombstone in seconds
-- Returns how many jobs it still holds; while there are any its registration stays, so that they are found: on its own
--       host as soon as its process has ended.
--
-- One that holds nothing gets a tombstone: a fetch of it that is still under way somewhere must take no job.

redis.call('DEL', KEYS[1], KEYS[4])
redis.pcall('SREM', KEYS[2], ARGV[1])
local held = redis.pcall('HLEN', KEYS[5])
if held == 0 then
  redis.pcall('HDEL', KEYS[6], ARGV[1])
  redis.pcall('ZREM', KEYS[3], ARGV[1])
  redis.pcall('HDEL', KEYS[8], ARGV[1])
  redis.pcall('SREM', KEYS[9], ARGV[1])
  redis.pcall('SET', KEYS[7], 'left', 'EX', ARGV[2])
  return 0
end
return type(held) == 'number' and held or -1
