-- resume.lua: let a paused queue be fetched from again, and wake a worker for what waits there.
--
-- KEYS  1 paused   2 list   3 priority   4 tokens
-- ARGV  1 queue name
-- Returns 1 where the queue was paused, else 0.
-- include: token

local was_paused = redis.call('SREM', KEYS[1], ARGV[1])
leave_token(KEYS[4])
return was_paused
