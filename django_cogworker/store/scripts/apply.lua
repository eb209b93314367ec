-- apply.lua: carry out effects on their own.
--
-- KEYS  keys of effects
-- ARGV  1 JSON list of effects
-- Returns the error texts of those that failed.
-- include: clock
-- include: token
-- include: effects

apply_effects(cjson.decode(ARGV[1]))
return effect_errors
