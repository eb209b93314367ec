-- exchange.lua: settle the jobs that a worker has finished with, and fetch the next ones for it.
--
-- KEYS  1 workers hash   2 holders   3 tombstone   4 paused   5 stats:processed   6 stats:failed   7 throughput of the hour
--       8 schedule   9 retry   10 dead   11 bulletin
--       then three keys a queue (list, priority, tokens): first those to fetch from in the order to try them
--       then queues that jobs go back to, then keys of effects
-- ARGV  1 identity   2 first ticket wanted   3 number of jobs wanted   4 number of queues to fetch from
--       5 bound of the dead set   6 age limit of the dead set in seconds
--       7 items: '' or JSON list of what is more than a plain success:
--         {t: ticket, d: disposition, p: index of a new payload in ARGV or 0, s: delay in seconds,
--          k: index of the queue's list in KEYS, r: priority, c: 'processed', 'failed' or '', e: [effects]}
--         dispositions: ack, schedule, retry, dead, front (of its queue)
--       8 notes: '' or JSON list of effects for the plain successes together. A call that is repeated repeats the same
--         successes with the same notes, so either all of them are held still, or none is and the notes were carried out
--       9 number of plain successes, then their tickets, then names of the queues to fetch from, then new payloads
-- Returns {status, first ticket of the next call, milliseconds to the next due job or -1, verdicts of the items,
--          jobs as flat list of ticket and value, errors, number of the bulletin}
--       status 1, or 0 where the identity was buried: then nothing was done.
--       A verdict is 1, 0 (the ticket was not held any more) or an error text: then the job stays in progress, and a
--       failure that could not be written to its set is noted beside it (field '=' and ticket) for its next try and
--       for recovery.
--
-- Order inside: acknowledge first (it frees memory), then move, then fetch; each write before its removal; each item
-- and each queue on its own. The tickets make a repeat harmless: those already granted are returned, not granted anew.
-- include: clock
-- include: token
-- include: effects
-- include: queue
-- include: count
-- include: bury

local workers, holders, identity = KEYS[1], KEYS[2], ARGV[1]
local first, wanted, queue_count = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = redis_now()
local errors = {}

if redis.call('EXISTS', KEYS[3]) == 1 then return {0, first, -1, {}, {}, {}, 0} end

local function held_payload(value)
  return string.sub(value, string.find(value, '\n', 1, true) + 1)
end

-- 1. Plain successes.
local acks = tonumber(ARGV[9])
local processed, failed = 0, 0
if acks > 0 then processed = redis.call('HDEL', workers, unpack(ARGV, 10, 9 + acks)) end
if processed > 0 and ARGV[8] ~= '' then apply_effects(cjson.decode(ARGV[8])) end

-- 2. All other ends.
local function settle(item)
  local value = redis.call('HGET', workers, item.t)
  if not value then return 0 end
  local payload = item.p > 0 and ARGV[item.p] or held_payload(value)
  local problem
  if item.d == 'schedule' or item.d == 'retry' then
    local key = item.d == 'retry' and KEYS[9] or KEYS[8]
    local reply = redis.pcall('ZADD', key, as_score(now + item.s), payload)
    if type(reply) == 'table' and reply.err then problem = reply.err end
  elseif item.d == 'dead' then
    problem = bury(KEYS[10], now, payload, tonumber(ARGV[5]), tonumber(ARGV[6]))
  elseif item.d == 'front' then
    problem = put_job(item.k, item.r, payload, true)
  end
  if problem then
    -- The job has run: what became of it must outlive this worker, or it would be run again.
    if item.d == 'retry' or item.d == 'dead' then
      redis.pcall('HSET', workers, '=' .. item.t, item.d .. ' ' .. as_score(now + item.s) .. '\n' .. payload)
    end
    return problem
  end
  redis.call('HDEL', workers, item.t, '!' .. item.t, '=' .. item.t)
  if item.c == 'processed' then processed = processed + 1 end
  if item.c == 'failed' then failed = failed + 1 end
  apply_effects(item.e, payload)
  return 1
end

local verdicts = {}
if ARGV[7] ~= '' then
  for number, item in ipairs(cjson.decode(ARGV[7])) do verdicts[number] = settle(item) end
end
count(KEYS[5], KEYS[7], 'processed', processed)
count(KEYS[6], KEYS[7], 'failed', failed)

-- 3. Fetch.
local jobs = {}
local names = 9 + acks
local upto = first

local function grant(values, members)
  local fields = {}
  for number, member in ipairs(members) do
    local ticket = string.format('%.0f', upto + number - 1)
    fields[number * 2 - 1], fields[number * 2] = ticket, values .. member
  end
  local reply = redis.pcall('HSET', workers, unpack(fields))
  if type(reply) == 'table' and reply.err then return reply.err end
  for _, each in ipairs(fields) do jobs[#jobs + 1] = each end
  upto = upto + #members
  redis.call('HSET', holders, identity, string.format('%.0f', upto))
  return nil
end

local function take_list(key, head)
  local found = redis.pcall('LRANGE', key, -wanted, -1)
  if found.err then return found.err end
  if #found == 0 then return nil end
  local oldest_first = {}
  for index = #found, 1, -1 do oldest_first[#oldest_first + 1] = found[index] end
  local problem = grant(head, oldest_first)
  if problem then return problem end
  redis.call('LTRIM', key, 0, -(#found + 1))
  wanted = wanted - #found
  return nil
end

local function take_priority(key, head, low, high)
  local found = redis.pcall('ZRANGEBYSCORE', key, low, high, 'LIMIT', 0, wanted)
  if found.err then return found.err end
  if #found == 0 then return nil end
  local problem = grant(head, found)
  if problem then return problem end
  redis.call('ZREM', key, unpack(found))
  wanted = wanted - #found
  return nil
end

local function left_behind(base)
  local waiting = redis.pcall('LLEN', KEYS[base])
  if waiting == 0 then waiting = redis.pcall('ZCARD', KEYS[base + 1]) end
  return type(waiting) == 'number' and waiting > 0
end

-- One queue: what is urgent, then the list, then what can wait. Only one of the three is looked at where the first
-- look settles it. Returns nil, or the first error.
local function take_queue(base, head)
  local prioritised = redis.pcall('ZCARD', KEYS[base + 1])
  local problem
  if type(prioritised) == 'table' then problem = prioritised.err end
  local some = type(prioritised) == 'number' and prioritised > 0
  if some then
    problem = take_priority(KEYS[base + 1], head, '-inf', '(' .. whole(ZERO_BAND)) or problem
  end
  if wanted > 0 then problem = take_list(KEYS[base], head) or problem end
  if some and wanted > 0 then
    problem = take_priority(KEYS[base + 1], head, whole(ZERO_BAND), '+inf') or problem
  end
  return problem
end

local function is_paused(queue)
  local reply = redis.pcall('SISMEMBER', KEYS[4], queue)
  if type(reply) == 'table' then errors[#errors + 1] = queue .. ': ' .. reply.err end
  return reply == 1
end

local granted = tonumber(redis.call('HGET', holders, identity) or '0')
if wanted > 0 and first < granted then
  -- A repeat, or a late packet was quicker: hand out what these tickets hold, and nothing else.
  local last = math.min(first + wanted, granted)
  for ticket = first, last - 1 do
    local field = string.format('%.0f', ticket)
    local value = redis.call('HGET', workers, field)
    if value then jobs[#jobs + 1], jobs[#jobs + 2] = field, value end
  end
  upto, wanted = last, 0
end

-- Where nothing is wanted (any more), jobs that are left get their token back.
local stamp = string.format('%.0f', now * 1000)
for number = 1, queue_count do
  local queue = ARGV[names + number]
  local base = 12 + (number - 1) * 3
  if not is_paused(queue) then
    if wanted > 0 then
      local problem = take_queue(base, stamp .. ' ' .. queue .. '\n')
      if problem then errors[#errors + 1] = queue .. ': ' .. problem end
    end
    if wanted == 0 and left_behind(base) then leave_token(KEYS[base + 2]) end
  end
end

-- 4. When does the next scheduled or retrying job come due?
local due = -1
for index = 8, 9 do
  local head = redis.pcall('ZRANGE', KEYS[index], 0, 0, 'WITHSCORES')
  if not head.err and #head == 2 then
    local wait = math.max(0, math.ceil((tonumber(head[2]) - now) * 1000))
    if due < 0 or wait < due then due = wait end
  end
end

for _, each in ipairs(effect_errors) do errors[#errors + 1] = each end
local bulletin = redis.pcall('GET', KEYS[11])
return {1, upto, due, verdicts, jobs, errors, type(bulletin) == 'string' and tonumber(bulletin) or 0}
