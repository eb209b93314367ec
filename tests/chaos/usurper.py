"""Puts somebody else's value in the place of a key, and sets things right again.

Each is one script, so no job is lost by the trial itself: the true key is renamed aside, and what
the product has written meanwhile is merged with it. Registries are overwritten for good, as somebody
else's `SET` does it: the product must be able to write them anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis

from django_cogworker.store.keys import Keys

KEYS = Keys("cogworker:")
ASIDE = "chaos:aside:"
MARK = "somebody else's value"

#: What may be lost: every worker writes it again.
REGISTRIES = ("queues", "paused_queues", "beats", "members", "processes", "queue:default:tokens")

_USURP = """
if ARGV[3] == 'lost' then redis.call('DEL', KEYS[1]) end
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end
if ARGV[2] == 'list' then redis.call('RPUSH', KEYS[1], ARGV[1]) else redis.call('SET', KEYS[1], ARGV[1]) end
return 1
"""

_RESTORE = """
local function is_wrong()
  local kind = redis.call('TYPE', KEYS[1]).ok
  if kind == 'string' then return redis.call('GET', KEYS[1]) == ARGV[1] end
  if kind == 'list' then return redis.call('LINDEX', KEYS[1], 0) == ARGV[1] end
  return false
end
if is_wrong() then redis.call('DEL', KEYS[1]) end
local kind = redis.call('TYPE', KEYS[2]).ok
if kind == 'none' then return 0 end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('RENAME', KEYS[2], KEYS[1])
  return 1
end
if kind == 'zset' then
  local flat = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
  for at = 1, #flat, 2 do redis.call('ZADD', KEYS[1], 'NX', flat[at + 1], flat[at]) end
elseif kind == 'hash' then
  local flat = redis.call('HGETALL', KEYS[2])
  for at = 1, #flat, 2 do redis.call('HSETNX', KEYS[1], flat[at], flat[at + 1]) end
elseif kind == 'list' then
  for _, each in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do redis.call('RPUSH', KEYS[1], each) end
else
  redis.call('INCRBY', KEYS[1], redis.call('GET', KEYS[2]))
end
redis.call('DEL', KEYS[2])
return 2
"""


def usurp(client: redis.Redis, name: str) -> None:
    """Put a wrong value under `name` (without the prefix)."""
    kind = "list" if name.startswith("stats:") else "string"
    fate = "lost" if name in REGISTRIES else "kept"
    _eval(client, _USURP, KEYS.prefix + name, kind, fate)


def restore(client: redis.Redis, name: str) -> None:
    """Take the wrong value away, wherever it is now, and bring back the true one."""
    _eval(client, _RESTORE, KEYS.prefix + name)


def restore_all(client: redis.Redis, names: Iterable[str]) -> None:
    """All of these, and away with the wrong values that the product has put aside."""
    for name in names:
        restore(client, name)
    for raw in list(client.scan_iter("*quarantine*", count=1000)):
        if _is_mark(client, raw):
            client.delete(raw)


def _is_mark(client: Any, key: bytes) -> bool:
    kind = client.type(key)
    if kind == b"string":
        return client.get(key) == MARK.encode()
    return kind == b"list" and client.lindex(key, 0) == MARK.encode()


def _eval(client: Any, script: str, key: str, *more: str) -> Any:
    return client.eval(script, 2, key, ASIDE + key, MARK, *more)
