-- effects.lua: what features may have done in the same step as a move of a job. A closed list.
-- An effect is {op, index of its key in KEYS, ...}. One that fails never stops the move: its error is noted.
-- A guard is {index of its key, owner, ttl in seconds}.
local effect_errors = {}

local function note_effect(reply)
  if type(reply) == 'table' and reply.err then
    effect_errors[#effect_errors + 1] = reply.err
  end
end

local effect_ops = {
  hincrby = function(key, effect) note_effect(redis.pcall('HINCRBY', key, effect[3], effect[4])) end,
  hset = function(key, effect) note_effect(redis.pcall('HSET', key, effect[3], effect[4])) end,
  append = function(key, effect)
    note_effect(redis.pcall('RPUSH', key, effect[3]))
    note_effect(redis.pcall('LTRIM', key, -tonumber(effect[4]), -1))
  end,
  expire = function(key, effect) note_effect(redis.pcall('EXPIRE', key, effect[3])) end,
  delete = function(key) note_effect(redis.pcall('DEL', key)) end,
  delete_if_owner = function(key, effect)
    if redis.pcall('GET', key) == effect[3] then note_effect(redis.pcall('DEL', key)) end
  end,
  expire_if_owner = function(key, effect)
    if redis.pcall('GET', key) == effect[3] then note_effect(redis.pcall('EXPIRE', key, effect[4])) end
  end,
}

local function apply_effects(effects)
  for _, effect in ipairs(effects) do
    local op = effect_ops[effect[1]]
    if op then op(KEYS[effect[2]], effect) end
  end
end

-- Claims all guards for their owners, or none. Returns nil, or the reason of the refusal.
local function claim_guards(guards)
  local claimed = {}
  for _, guard in ipairs(guards) do
    local key = KEYS[guard[1]]
    local reply = redis.pcall('SET', key, guard[2], 'NX', 'EX', guard[3])
    if type(reply) == 'table' and reply.ok then
      claimed[#claimed + 1] = key
    elseif redis.pcall('GET', key) ~= guard[2] then
      for _, each in ipairs(claimed) do redis.call('DEL', each) end
      if type(reply) == 'table' and reply.err then return reply.err end
      return 'duplicate'
    end
  end
  return nil
end
