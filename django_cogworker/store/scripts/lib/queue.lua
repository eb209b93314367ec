-- queue.lua: how a job lies on a queue. A queue is three keys: list, sorted set of prioritised jobs, tokens. Needs token.lua.
--
-- Priorities: one band of scores per priority, from 100 (band 0) down to -100 (band 200). Inside a band new jobs
-- count up from the middle and jobs given back count down, so a band is first in, first out, and exact in a double.
local BAND = 2 ^ 44
local MIDDLE = 2 ^ 43
local ZERO_BAND = 100 * BAND

local function band_edges(priority)
  local low = (100 - priority) * BAND
  return low, low + BAND - 1
end

local function whole(score)
  return string.format('%.0f', score)
end

local function priority_score(key, priority, front)
  local low, high = band_edges(priority)
  local found
  if front then
    found = redis.pcall('ZRANGEBYSCORE', key, whole(low), whole(high), 'WITHSCORES', 'LIMIT', 0, 1)
  else
    found = redis.pcall('ZREVRANGEBYSCORE', key, whole(high), whole(low), 'WITHSCORES', 'LIMIT', 0, 1)
  end
  if found.err then return nil, found.err end
  if #found == 0 then return low + MIDDLE end
  return tonumber(found[2]) + (front and -1 or 1)
end

-- Puts one job on the queue whose list is KEYS[base]: at the back, or at the front (it runs next).
-- Returns nil, or the error that kept it from being written.
local function put_job(base, priority, payload, front)
  local reply
  if priority == 0 then
    reply = redis.pcall(front and 'RPUSH' or 'LPUSH', KEYS[base], payload)
  else
    local score, problem = priority_score(KEYS[base + 1], priority, front)
    if not score then return problem end
    reply = redis.pcall('ZADD', KEYS[base + 1], whole(score), payload)
  end
  if type(reply) == 'table' and reply.err then return reply.err end
  leave_token(KEYS[base + 2])
  return nil
end
