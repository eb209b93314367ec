-- recover.lua: judge a worker dead, and bring what it held to where it belongs.
--
-- KEYS  1 workers hash of the dead   2 holders   3 beats   4 fleet_since   5 its tombstone   6 members   7 processes
--       8 its process hash   9 schedule   10 dead   11 stats:failed   12 throughput of the hour   13 queues
--       14 members of its host   15 retry   16 fleet_beat
--       then three keys a queue (list, priority, tokens), then keys of effects
-- ARGV  1 identity   2 'gone' (the caller saw on its own host that the process is no more) or 'silent' (judge by the beats)
--       3 orphan threshold in seconds   4 TTL of the tombstone in seconds
--       5 bound of the dead set   6 age limit of the dead set in seconds
--       7 JSON list of what to do with each job: {t: ticket, d: 'front', 'schedule', 'retry' or 'dead', p: index of the
--         payload in ARGV, s: delay in seconds (for 'retry' the due time), k: index of the queue's list in KEYS,
--         r: priority, q: queue, m: 1 where it was marked as started when it was read, f: 1 where its failure was
--         noted, e: [effects]}
--       then the payloads
-- Returns {dead, verdicts, jobs it still holds}: dead 0 means that it lives, and nothing was done. A verdict is 1, 0 (the
--       job was not there any more, or not as it was read: read it anew) or an error text (it stays where it is).
--
-- Judging and moving are one step, so two recoverers cannot both act. The tombstone is set with the first judgement: from
-- then on the dead one gets no job, and a late packet of it strands nothing.
-- include: clock
-- include: token
-- include: effects
-- include: queue
-- include: count
-- include: bury

local workers, identity = KEYS[1], ARGV[1]
local now = redis_now()

local function is_silent()
  local threshold = tonumber(ARGV[3])
  -- Nobody has beaten just now: who asks is back from an outage before its own beat, and so may the others be.
  if redis.pcall('EXISTS', KEYS[16]) ~= 1 then return false end
  local since = redis.pcall('GET', KEYS[4])
  if type(since) ~= 'string' or now - (tonumber(since) or now) <= threshold then return false end
  local beat = redis.pcall('ZSCORE', KEYS[3], identity)
  -- All beats may have been lost at once: the presence, a key of its own, tells of the same beat.
  if not beat then beat = redis.pcall('HGET', KEYS[8], 'beat') end
  return not beat or (type(beat) == 'string' and now - tonumber(beat) > threshold)
end

if redis.call('EXISTS', KEYS[5]) == 0 and ARGV[2] ~= 'gone' and not is_silent() then return {0, {}, 0} end
redis.call('SET', KEYS[5], 'buried', 'EX', ARGV[4])

local failed = 0

local function move(item)
  if redis.call('HEXISTS', workers, item.t) == 0 then return 0 end
  -- It began, or failed, after the caller had read it: what the caller decided is not for such a job.
  if redis.call('HEXISTS', workers, '!' .. item.t) ~= item.m then return 0 end
  if redis.call('HEXISTS', workers, '=' .. item.t) ~= item.f then return 0 end
  local payload, problem = ARGV[item.p], nil
  if item.d == 'front' then
    redis.pcall('SADD', KEYS[13], item.q)
    problem = put_job(item.k, item.r, payload, true)
  elseif item.d == 'schedule' then
    local reply = redis.pcall('ZADD', KEYS[9], as_score(now + item.s), payload)
    if type(reply) == 'table' and reply.err then problem = reply.err end
  elseif item.d == 'retry' then
    local reply = redis.pcall('ZADD', KEYS[15], as_score(item.s), payload)
    if type(reply) == 'table' and reply.err then problem = reply.err end
  else
    problem = bury(KEYS[10], now, payload, tonumber(ARGV[5]), tonumber(ARGV[6]))
  end
  if problem then return problem end
  if item.d == 'retry' or item.d == 'dead' then failed = failed + 1 end
  redis.call('HDEL', workers, item.t, '!' .. item.t, '=' .. item.t)
  apply_effects(item.e, payload)
  return 1
end

local verdicts = {}
for number, item in ipairs(cjson.decode(ARGV[7])) do verdicts[number] = move(item) end
count(KEYS[11], KEYS[12], 'failed', failed)

local left = redis.call('HLEN', workers)
if left == 0 then
  redis.pcall('HDEL', KEYS[2], identity)
  redis.pcall('ZREM', KEYS[3], identity)
  redis.pcall('HDEL', KEYS[6], identity)
  redis.pcall('SREM', KEYS[7], identity)
  redis.pcall('SREM', KEYS[14], identity)
  redis.pcall('DEL', KEYS[8])
end
return {1, verdicts, left}
