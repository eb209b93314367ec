-- survey.lua: who may be dead, and who lives on the caller's host. Reads only.
--
-- KEYS  1 beats   2 holders   3 members   4 members of the caller's host
-- ARGV  1 silence in seconds after which a worker counts as silent   2 the most silent ones to name
--       3 '1': also look for holders without any beat (O(number of workers))
-- Returns {silent, neighbours, errors}: two flat lists of identity and facts (JSON, or '' where none are known)
-- include: clock

local now = redis_now()
local errors = {}

local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    errors[#errors + 1] = reply.err
    return {}
  end
  return reply
end

local function with_facts(identities)
  local flat = {}
  for _, identity in ipairs(identities) do
    local facts = redis.pcall('HGET', KEYS[3], identity)
    flat[#flat + 1], flat[#flat + 2] = identity, type(facts) == 'string' and facts or ''
  end
  return flat
end

local silent = ask('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. as_score(now - tonumber(ARGV[1])), 'LIMIT', 0, ARGV[2])
if ARGV[3] == '1' then
  for _, identity in ipairs(ask('HKEYS', KEYS[2])) do
    if redis.pcall('ZSCORE', KEYS[1], identity) == false then silent[#silent + 1] = identity end
  end
end

return {with_facts(silent), with_facts(ask('SMEMBERS', KEYS[4])), errors}
