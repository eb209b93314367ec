-- mark_started.lua: write down that a job which may run at most once has started.
--
-- KEYS  1 workers hash
-- ARGV  1 ticket
-- Returns 1, or 0 where the ticket is not held any more: then the job must not run.

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], '!' .. ARGV[1], '1')
return 1
