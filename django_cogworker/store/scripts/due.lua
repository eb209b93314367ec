-- due.lua: read (and only read) the oldest due jobs of the scheduled and the retrying set.
--
-- KEYS  1 schedule   2 retry
-- ARGV  1 how many of each at the most
-- Returns {scheduled, retrying, milliseconds to the next job that is not in the answer or -1, errors}
-- include: clock

local now = as_score(redis_now())
local limit = tonumber(ARGV[1])
local answer, errors = {}, {}
local wait = -1

for index = 1, 2 do
  local found = redis.pcall('ZRANGEBYSCORE', KEYS[index], '-inf', now, 'LIMIT', 0, limit)
  if found.err then
    errors[#errors + 1] = KEYS[index] .. ': ' .. found.err
    found = {}
  elseif #found == limit then
    wait = 0
  else
    local head = redis.call('ZRANGEBYSCORE', KEYS[index], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if #head == 2 then
      local ms = math.max(0, math.ceil((tonumber(head[2]) - tonumber(now)) * 1000))
      if wait < 0 or ms < wait then wait = ms end
    end
  end
  answer[index] = found
end

return {answer[1], answer[2], wait, errors}
