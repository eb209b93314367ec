-- clock.lua: Redis's own time, in seconds with a fraction.
local function redis_now()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end

local function as_score(seconds)
  return string.format('%.6f', seconds)
end
