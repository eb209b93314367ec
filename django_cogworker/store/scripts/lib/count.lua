-- count.lua: the running totals and the counters of the hour. A counter that fails never stops a move.
local function count(total_key, hour_key, field, by)
  if by == 0 then return end
  redis.pcall('INCRBY', total_key, by)
  redis.pcall('HINCRBY', hour_key, field, by)
  redis.pcall('EXPIRE', hour_key, 90000)
end
