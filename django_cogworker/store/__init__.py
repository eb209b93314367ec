"""Floor 1: everything that speaks to Redis.

`target` says where Redis is, `connection` makes pools for it, `keys` names the keys, `scripts` runs
the Lua verbs, `verbs` offers what the floors above may ask for, once with scripts and once without;
`recovering` has the verbs about dead workers.
This file stays empty of imports: the embedded server's watchdog passes through it.
"""
