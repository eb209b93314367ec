-- bury.lua: the dead set, bounded by count and by age. Needs clock.lua.
-- Returns nil, or the error that kept the job from being written.
local function bury(dead_key, now, payload, max_jobs, max_age)
  local reply = redis.pcall('ZADD', dead_key, as_score(now), payload)
  if type(reply) == 'table' and reply.err then return reply.err end
  redis.pcall('ZREMRANGEBYSCORE', dead_key, '-inf', '(' .. as_score(now - max_age))
  redis.pcall('ZREMRANGEBYRANK', dead_key, 0, -(max_jobs + 1))
  return nil
end
