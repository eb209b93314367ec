-- push.lua: put jobs on their queues or into the scheduled set, once, however often the call is repeated.
--
-- KEYS  1 lane   2 queues   3 schedule   4 schedule tokens
--       then three keys a queue (list, priority, tokens), then keys of guards and effects
-- ARGV  1 number of this push on its lane      2 TTL of the lane in seconds
--       3 extras: '' or JSON {job number: {g: [guards], e: [effects]}}, job numbers from 1 as text
--       4 soon: jobs due within so many seconds wake an idle worker
--       then groups until the end: kind, index of the queue's list in KEYS (0 for the schedule), queue name, count,
--       and count times: payload (kind 'list'); priority, payload ('priority'); score, payload ('schedule')
-- Returns JSON: [] when all were accepted, else a list of [job number, 'duplicate' and who has the claim, or an error text].
--
-- The result is kept under the lane with the number: a repeat after a lost reply gets the same answer and
-- writes nothing. A lane has one push in flight, so an equal number is always a repeat.
-- include: clock
-- include: token
-- include: effects
-- include: queue

local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'string' then
  local number, result = string.match(kept, '^(%d+) (.*)$')
  if number == ARGV[1] then return result end
end

local extras = ARGV[3] ~= '' and cjson.decode(ARGV[3]) or {}
local refused = {}
local cursor, job = 5, 0
local soon = redis_now() + tonumber(ARGV[4])

local function refuse(number, reason)
  refused[#refused + 1] = {number, reason}
end

local function destination_problem(kind, base)
  local key, wanted = KEYS[base], 'list'
  if kind == 'priority' then key, wanted = KEYS[base + 1], 'zset' end
  if kind == 'schedule' then key, wanted = KEYS[3], 'zset' end
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= wanted then
    return 'WRONGTYPE ' .. key .. ' holds a ' .. found .. ' where a ' .. wanted .. ' belongs'
  end
  return nil
end

local function write_one(kind, base, rank, payload)
  if kind ~= 'schedule' then return put_job(base, kind == 'list' and 0 or tonumber(rank), payload, false) end
  local reply = redis.pcall('ZADD', KEYS[3], rank, payload)
  if type(reply) == 'table' and reply.err then return reply.err end
  if tonumber(rank) <= soon then leave_token(KEYS[4]) end
  return nil
end

local function write_guarded(number, extra, kind, base, rank, payload)
  local guards = extra.g or {}
  local problem, before = claim_guards(guards)
  if problem then return problem end
  problem = write_one(kind, base, rank, payload)
  if problem then
    release_guards(guards, before, #guards)
    return problem
  end
  apply_effects(extra.e or {}, payload)
  return nil
end

while cursor <= #ARGV do
  local kind, base, queue = ARGV[cursor], tonumber(ARGV[cursor + 1]), ARGV[cursor + 2]
  local size, first_job = tonumber(ARGV[cursor + 3]), job + 1
  local width = kind == 'list' and 1 or 2
  local start = cursor + 4
  cursor, job = start + size * width, job + size
  local problem = destination_problem(kind, base)
  if problem then
    for number = first_job, job do refuse(number, problem) end
  else
    if queue ~= '' then redis.pcall('SADD', KEYS[2], queue) end
    local extra = extras[tostring(first_job)]
    if kind == 'list' and not extra then
      local reply = redis.pcall('LPUSH', KEYS[base], unpack(ARGV, start, cursor - 1))
      if type(reply) == 'table' and reply.err then
        for number = first_job, job do refuse(number, reply.err) end
      else
        leave_token(KEYS[base + 2])
      end
    else
      for offset = 0, size - 1 do
        local rank = width == 2 and ARGV[start + offset * 2] or nil
        local payload = ARGV[start + offset * width + width - 1]
        local number = first_job + offset
        extra = extras[tostring(number)]
        if extra then
          problem = write_guarded(number, extra, kind, base, rank, payload)
        else
          problem = write_one(kind, base, rank, payload)
        end
        if problem then refuse(number, problem) end
      end
    end
  end
end

local result = #refused == 0 and '[]' or cjson.encode(refused)
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. result, 'EX', ARGV[2])
return result
