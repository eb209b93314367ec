-- graduate.lua: move due jobs from the scheduled or the retrying set to their queues.
--
-- KEYS  1 the set they are in   2 queues   3 dead   4 stats:failed   5 throughput of the hour
--       then three keys a queue (list, priority, tokens), then keys of effects
-- ARGV  1 bound of the dead set   2 age limit of the dead set in seconds   3 seconds to postpone what cannot be moved
--       then six a job: index of the queue's list in KEYS (0: bury it), queue name, priority, the member as it is
--       in the set, the payload to write, effects ('' or JSON list)
-- Returns a list: per job 1 moved, 0 gone (another mover was first), or an error text (postponed).
-- include: clock
-- include: token
-- include: effects
-- include: queue
-- include: count
-- include: bury

local now = redis_now()
local verdicts = {}
local buried = 0

local function move(base, queue, priority, member, payload, effects)
  if not redis.call('ZSCORE', KEYS[1], member) then return 0 end
  local problem
  if base == 0 then
    problem = bury(KEYS[3], now, payload, tonumber(ARGV[1]), tonumber(ARGV[2]))
    if not problem then buried = buried + 1 end
  else
    redis.pcall('SADD', KEYS[2], queue)
    problem = put_job(base, priority, payload, false)
  end
  if problem then
    redis.call('ZADD', KEYS[1], 'XX', as_score(now + tonumber(ARGV[3])), member)
    return problem
  end
  redis.call('ZREM', KEYS[1], member)
  if effects ~= '' then apply_effects(cjson.decode(effects), member) end
  return 1
end

for cursor = 4, #ARGV, 6 do
  verdicts[#verdicts + 1] =
    move(tonumber(ARGV[cursor]), ARGV[cursor + 1], tonumber(ARGV[cursor + 2]), unpack(ARGV, cursor + 3, cursor + 5))
end
count(KEYS[4], KEYS[5], 'failed', buried)
return verdicts
