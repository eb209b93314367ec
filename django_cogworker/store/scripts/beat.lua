-- beat.lua: a worker says that it lives, and hears what was asked of it.
--
-- KEYS  1 process hash   2 processes   3 beats   4 fleet_since   5 queues   6 signal   7 members   8 members of its host
--       9 fleet_beat   10 bulletin   11 its tombstone
-- ARGV  1 identity   2 TTL of the presence in seconds   3 gap in milliseconds after which the fleet counts as new
--       4 facts about its host and process (JSON, or '')   5 TTL in seconds of what is kept about all workers
--       6 info (JSON)   7 busy   8 quiet ('true' or 'false')   then the names of the worker's queues
-- Returns {Redis's time, remote command or '', errors, number of the bulletin, buried}; buried 1: this identity is no more, and nothing
-- was done. Only the presence itself is indispensable.
-- include: clock

local now = redis_now()
local errors = {}

-- A late beat must not bring back who was buried: whoever saw that again would think that its process has died.
if redis.call('EXISTS', KEYS[11]) == 1 then return {as_score(now), '', errors, 0, 1} end

local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then errors[#errors + 1] = reply.err end
  return reply
end

redis.call('HSET', KEYS[1], 'info', ARGV[6], 'busy', ARGV[7], 'quiet', ARGV[8], 'beat', as_score(now))
redis.call('EXPIRE', KEYS[1], ARGV[2])
try('SADD', KEYS[2], ARGV[1])
try('EXPIRE', KEYS[2], ARGV[5])

local alive = redis.pcall('EXISTS', KEYS[9]) == 1 -- outlives the beats of those that left in good order
local since = redis.pcall('GET', KEYS[4])
since = type(since) == 'string' and tonumber(since)
local usable = since and since <= now -- without it nobody would ever be silent for long enough
if not usable or not alive then try('SET', KEYS[4], as_score(now)) end
try('SET', KEYS[9], '1', 'PX', ARGV[3])
try('ZADD', KEYS[3], as_score(now), ARGV[1])
try('ZREMRANGEBYSCORE', KEYS[3], '-inf', as_score(now - 604800))
if ARGV[4] ~= '' then
  try('HSET', KEYS[7], ARGV[1], ARGV[4])
  try('EXPIRE', KEYS[7], ARGV[5])
  try('SADD', KEYS[8], ARGV[1])
  try('EXPIRE', KEYS[8], ARGV[5])
end
for index = 9, #ARGV do try('SADD', KEYS[5], ARGV[index]) end

local command = redis.pcall('GET', KEYS[6])
if type(command) ~= 'string' then command = '' end
local bulletin = redis.pcall('GET', KEYS[10])
return {as_score(now), command, errors, type(bulletin) == 'string' and tonumber(bulletin) or 0, 0}
