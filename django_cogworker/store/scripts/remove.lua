-- remove.lua: take jobs away from where they wait.
--
-- KEYS  1 the queue's list or a sorted set   then keys of effects
-- ARGV  two a job: the member as it lies there, effects ('' or JSON list)
-- Returns a list: per job 1 removed, 0 not there (any more), or an error text. O(length) a job in a list.
-- include: clock
-- include: token
-- include: effects

local is_list = redis.call('TYPE', KEYS[1]).ok == 'list'
local verdicts = {}

for cursor = 1, #ARGV, 2 do
  local reply
  if is_list then
    reply = redis.pcall('LREM', KEYS[1], 1, ARGV[cursor])
  else
    reply = redis.pcall('ZREM', KEYS[1], ARGV[cursor])
  end
  if type(reply) == 'table' then reply = reply.err end
  if reply == 1 and ARGV[cursor + 1] ~= '' then apply_effects(cjson.decode(ARGV[cursor + 1]), ARGV[cursor]) end
  verdicts[#verdicts + 1] = reply
end
return verdicts
