-- effects.lua: what features may have done in the same step as a move of a job. A closed list. Needs clock.lua, token.lua.
-- An effect is {op, index of its key in KEYS, indices of its further keys, ...}. One that fails never stops the move: its
-- error is noted. `job` is the job of the step as it is filed now (as it was filed, where the step takes it away), or nil.
-- A guard is {index of its key, owner, ttl in seconds, 'claim', 'take' or 'rises', index of the hash that notes whose it
-- was when it is taken, or 0}.
local effect_errors = {}

local function note_effect(reply)
  if type(reply) == 'table' and reply.err then
    effect_errors[#effect_errors + 1] = reply.err
  end
end

-- Makes room in a full table (see `tally`): drops the rows that are too old, and at the least the oldest tenth, so
-- that a stream of new fields does not make it look through the table each time.
local function make_room(key, most, oldest)
  if redis.call('HLEN', key) < most then return end
  local flat, rows = redis.call('HGETALL', key), {}
  for at = 1, #flat, 2 do
    rows[#rows + 1] = {tonumber(string.match(flat[at + 1], '^(%S+) ')) or 0, flat[at]}
  end
  table.sort(rows, function(one, other) return one[1] < other[1] end)
  local least = math.max(1, math.floor(most / 10))
  for number, row in ipairs(rows) do
    if number <= least or row[1] < oldest then redis.call('HDEL', key, row[2]) end
  end
end

local effect_ops = {
  hincrby = function(key, effect)
    for at = 3, #effect, 2 do note_effect(redis.pcall('HINCRBY', key, effect[at], effect[at + 1])) end
  end,
  hset = function(key, effect) note_effect(redis.pcall('HSET', key, unpack(effect, 3))) end,
  hdel = function(key, effect) note_effect(redis.pcall('HDEL', key, unpack(effect, 3))) end,
  record = function(key, effect)
    note_effect(redis.pcall('ZADD', key, effect[3], effect[4], unpack(effect, 7)))
    note_effect(redis.pcall('ZREMRANGEBYSCORE', key, '-inf', '(' .. effect[5]))
    note_effect(redis.pcall('ZREMRANGEBYRANK', key, 0, -tonumber(effect[6]) - 1))
  end,
  advance = function(key, effect)
    local had = redis.pcall('HGET', key, effect[3])
    if type(had) == 'string' and tonumber(had) and tonumber(had) > tonumber(effect[4]) then return end
    note_effect(redis.pcall('HSET', key, effect[3], effect[4], unpack(effect, 6)))
    note_effect(redis.pcall('EXPIRE', key, effect[5]))
  end,
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
  forget = function(key, effect) note_effect(redis.pcall('ZREM', key, unpack(effect, 3))) end,
  enlist = function(key, effect, job)
    if not job then return end
    note_effect(redis.pcall('ZADD', key, effect[3], job))
    note_effect(redis.pcall('ZREMRANGEBYRANK', key, effect[4], -1))
    note_effect(redis.pcall('EXPIRE', key, effect[5]))
  end,
  delist = function(key, effect, job)
    if job then note_effect(redis.pcall('ZREM', key, job)) end
  end,
  hasten = function(key, effect)
    local waits_for, set, tokens = KEYS[effect[3]], KEYS[effect[4]], KEYS[effect[5]]
    if redis.call('EXISTS', waits_for) == 1 then return end
    while true do
      local first = redis.pcall('ZPOPMIN', key)
      if first.err then return note_effect(first) end
      if #first == 0 then return end
      local due, now = redis.pcall('ZSCORE', set, first[1]), redis_now()
      if type(due) == 'string' then
        if tonumber(due) > now then redis.call('ZADD', set, 'XX', as_score(now), first[1]) end
        return leave_token(tokens)
      end
    end
  end,
  -- A row is '<last moment> <count> <first moment> <hour>:<count in that hour> …', a new line, and a text. In a
  -- full table those that were silent for the longest time leave.
  tally = function(key, effect)
    local field, at, text = effect[3], effect[4], effect[7]
    local had = redis.pcall('HGET', key, field)
    if type(had) == 'table' then return note_effect(had) end
    local hour = math.floor(tonumber(at) / 3600)
    local last, count, first, rest, hours, this_hour = at, 0, at, '', {}, 0
    if had then
      local found, number, begun, more = string.match(had, '^(%S+) (%d+) (%S+)([%d: ]*)\n')
      if number then
        count, first, rest = tonumber(number), begun, more
        if (tonumber(found) or 0) > tonumber(at) then last = found end
      end
    else
      make_room(key, tonumber(effect[5]), tonumber(effect[6]))
    end
    for each, number in string.gmatch(rest, '(%d+):(%d+)') do
      if tonumber(each) == hour then
        this_hour = tonumber(number)
      elseif tonumber(each) > hour - 24 then
        hours[#hours + 1] = each .. ':' .. number
      end
    end
    hours[#hours + 1] = string.format('%.0f:%.0f', hour, this_hour + 1)
    local head = string.format('%s %.0f %s ', last, count + 1, first)
    note_effect(redis.pcall('HSET', key, field, head .. table.concat(hours, ' ') .. '\n' .. text))
  end,
  hold = function(key, effect)
    local owner = redis.pcall('GET', key)
    if owner == effect[3] then
      note_effect(redis.pcall('EXPIRE', key, effect[4]))
    elseif not owner then
      note_effect(redis.pcall('SET', key, effect[3], 'EX', effect[4]))
    end
  end,
}

local function apply_effects(effects, job)
  for _, effect in ipairs(effects) do
    local op = effect_ops[effect[1]]
    if op then op(KEYS[effect[2]], effect, job) end
  end
end

-- Claims one guard. Returns nil, or the reason of the refusal.
local function claim(guard)
  local key, owner, kind = KEYS[guard[1]], guard[2], guard[4]
  local had = redis.pcall('GET', key)
  if type(had) == 'table' then return had.err end
  if kind == 'rises' then
    if had and tonumber(had) and tonumber(had) >= tonumber(owner) then return 'duplicate ' .. had end
  elseif kind == 'claim' and had and had ~= owner then
    return 'duplicate ' .. had
  end
  if kind == 'take' and guard[5] > 0 and had and had ~= owner then
    local noted = KEYS[guard[5]]
    local life = math.max(tonumber(guard[3]), redis.call('TTL', key), redis.call('TTL', noted))
    local reply = redis.pcall('HSET', noted, had, 1)
    if type(reply) == 'table' and reply.err then return reply.err end
    redis.call('EXPIRE', noted, life)
  end
  local reply = redis.pcall('SET', key, owner, 'EX', guard[3])
  if type(reply) == 'table' and reply.err then return reply.err end
  return nil
end

-- Puts back what was there before the guards were claimed.
local function release_guards(guards, before, upto)
  for number = 1, upto do
    local guard, had = guards[number], before[number]
    local key = KEYS[guard[1]]
    if had.value then
      if guard[5] > 0 then redis.pcall('HDEL', KEYS[guard[5]], had.value) end
      redis.call('SET', key, had.value, 'PX', math.max(1, had.ttl))
    else
      redis.call('DEL', key)
    end
  end
end

-- Claims all guards for their owners, or none. Returns the reason of a refusal, or nil and what was there before.
local function claim_guards(guards)
  local before = {}
  for number, guard in ipairs(guards) do
    local key = KEYS[guard[1]]
    local value = redis.pcall('GET', key)
    before[number] = {value = type(value) == 'string' and value or false, ttl = redis.call('PTTL', key)}
    local problem = claim(guard)
    if problem then
      release_guards(guards, before, number - 1)
      return problem, nil
    end
  end
  return nil, before
end
