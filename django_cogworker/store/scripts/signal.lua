-- signal.lua: leave a remote command for a worker. The last one counts, but a stop stays a stop.
--
-- KEYS  1 process hash   2 signal
-- ARGV  1 command: quiet, resume or stop   2 a random text that tells repeats apart   3 TTL in seconds
-- Returns 1, or 0 where no such worker lives.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local standing = redis.pcall('GET', KEYS[2])
if type(standing) == 'string' and string.sub(standing, 1, 5) == 'stop ' then return 1 end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'EX', ARGV[3])
return 1
