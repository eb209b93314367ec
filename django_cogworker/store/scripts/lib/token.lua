-- token.lua: a token wakes one idle worker. One is enough: who fetches and leaves jobs behind puts one back.
-- A token key of the wrong type only costs promptness, since idle workers look by themselves now and then.
local function leave_token(key)
  if redis.pcall('LLEN', key) == 0 then redis.pcall('LPUSH', key, '1') end
end
