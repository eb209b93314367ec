-- refile.lua: move jobs that wait to another place or another time, or take them away, because somebody wishes it.
--
-- KEYS  1 where they wait: a queue's list or its priorities, or a set of jobs   2 queues   3 schedule   4 retry   5 dead
--       6 schedule tokens   then three keys a queue (list, priority, tokens), then keys of effects
-- ARGV  1 bound of the dead set   2 age limit of the dead set in seconds   3 soon: what is due within so many seconds wakes an
--       idle worker   4 entries of a list that may be gone through in this call
--       then eight a job: place ('queue', 'schedule', 'retry', 'dead', or 'gone': nowhere), index of the queue's list in
--       KEYS or 0, queue name, rank (priority on a queue; score in a set, '' for the one that it has there, or now where it
--       comes to the dead set), the member as it lies there, how far from the right end of the list it was seen (-1: not known), the payload to write, effects ('' or JSON list)
-- Returns a list: per job 1 moved, 0 gone (somebody was quicker), -1 not looked for (ask again), or an error text (it stays).
--
-- A list has no index by member. A job is looked for where it was seen; others were fetched since, so all have moved by
-- the same number. Only where it is not there the list is gone through, from the right. Those found are marked, and one
-- pass takes all marks out.
-- include: clock
-- include: token
-- include: effects
-- include: queue
-- include: bury

local MARK = '\0taken away'
-- Jobs put back on the right move the others this much to the left, at the most.
local SLACK = 100

local source = KEYS[1]
local sets = {schedule = KEYS[3], retry = KEYS[4], dead = KEYS[5]}
local now = redis_now()
local is_list = redis.call('TYPE', source).ok == 'list'
local length = is_list and redis.call('LLEN', source) or 0
local looks = tonumber(ARGV[4])
local shift, marked, farthest = 0, 0, 0

-- Index of the member in the list, or false; second whether it was looked for.
local function find(member, far)
  local near = length - 1 - (far + shift)
  if far >= 0 and near >= 0 and redis.call('LINDEX', source, near) == member then return near, true end
  if looks <= 0 then return false, false end
  local most = far >= 0 and math.min(length, math.max(0, far + shift) + SLACK) or length
  looks = looks - most
  local index = redis.call('LPOS', source, member, 'RANK', -1, 'MAXLEN', most)
  if index and far >= 0 then shift = length - 1 - index - far end
  return index, true
end

-- Returns nil, or the error that kept it from being written; second whether it lies where it was, as it was.
local function write(place, base, queue, rank, member, payload, score)
  if place == 'gone' then return nil, false end
  if place == 'queue' then
    if KEYS[base] == source or KEYS[base + 1] == source then return 'it is on that queue', true end
    redis.pcall('SADD', KEYS[2], queue)
    return put_job(base, tonumber(rank), payload, false), false
  end
  local key = sets[place]
  if place == 'dead' and key ~= source then
    return bury(key, now, payload, tonumber(ARGV[1]), tonumber(ARGV[2])), false
  end
  if rank == '' then rank = score or as_score(now) end
  local reply = redis.pcall('ZADD', key, rank, payload)
  if type(reply) == 'table' and reply.err then return reply.err, true end
  if place ~= 'dead' and tonumber(rank) <= now + tonumber(ARGV[3]) then leave_token(KEYS[6]) end
  return nil, key == source and payload == member
end

local function move(place, base, queue, rank, member, far, payload, effects)
  local index, looked, score
  if is_list then
    index, looked = find(member, tonumber(far))
    if not looked then return -1 end
    if not index then return 0 end
  else
    score = redis.pcall('ZSCORE', source, member)
    if type(score) == 'table' then return score.err end
    if not score then return 0 end
  end
  local problem, stays = write(place, tonumber(base), queue, rank, member, payload, score)
  if problem then return problem end
  if is_list then
    redis.call('LSET', source, index, MARK)
    marked, farthest = marked + 1, math.max(farthest, length - 1 - index)
  elseif not stays then
    redis.call('ZREM', source, member)
  end
  if effects ~= '' then apply_effects(cjson.decode(effects), member) end
  return 1
end

local verdicts = {}
for cursor = 5, #ARGV, 8 do verdicts[#verdicts + 1] = move(unpack(ARGV, cursor, cursor + 7)) end
if marked > 0 then
  -- From the end that is nearer to all of them.
  redis.call('LREM', source, farthest * 2 < length and -marked or marked, MARK)
end
return verdicts
