"""Keys of the wrong type, found and put out of the way.

Something else wrote to a name of ours: a mistake in a script, a restore, another program. Each verb isolates
such a key, but what belongs there has no place until it is gone. So it is renamed, with all that it
holds, to `quarantine:<key>:<ms>:<hex>`, kept for 30 days, at most five copies of one key. Nothing is
ever deleted that somebody may want to see.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

import redis

from django_cogworker.store.keys import Keys
from django_cogworker.store.scripted import current_hour, text

#: Seconds that a copy is kept, copies of one key, and copies of all keys together.
TTL = 30 * 86_400
MOST_COPIES = 5
MOST_IN_ALL = 500
#: Queues that one look asks about, beside the worker's own; which ones, Redis draws.
MOST_QUEUES = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Misplaced:
    """A key that has another type than belongs there."""

    key: str
    wanted: str
    found: str


class Quarantine:
    """Works by plain commands, so also where scripts are refused."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client: Any = client
        self._keys = keys

    def look(
        self,
        queues: Iterable[str],
        identity: str,
        host: str,
        more: Mapping[str, str] | None = None,
    ) -> list[Misplaced]:
        """The known keys of the wrong type: three round trips, whatever lies in Redis. `more`: further
        keys and their types.
        """
        wanted = {**self._wanted(queues, identity, host), **(more or {})}
        pipe = self._client.pipeline(transaction=False)
        for key in wanted:
            pipe.type(key)
        types = [text(each) for each in pipe.execute()]
        return [
            Misplaced(key, wanted[key], found)
            for key, found in zip(wanted, types, strict=True)
            if found not in (wanted[key], "none")
        ]

    def _wanted(self, queues: Iterable[str], identity: str, host: str) -> dict[str, str]:
        keys = self._keys
        names, holders = self._known()
        types = {
            "zset": [
                keys.schedule,
                keys.retry,
                keys.dead,
                keys.beats,
                keys.losses,
                keys.quarantined,
            ],
            "set": [keys.queues, keys.paused, keys.processes, keys.host(host)],
            "hash": [keys.holders, keys.members, keys.throughput(current_hour())],
            "string": [keys.fleet_since, keys.processed, keys.failed],
            "list": [keys.due_tokens],
        }
        for each in {identity, *holders}:
            types["hash"] += [keys.workers(each), keys.process(each)]
            types["string"].append(keys.tombstone(each))
        for name in {*queues, *names}:
            queue = keys.queue(name)
            types["list"] += [queue.jobs, queue.tokens]
            types["zset"].append(queue.priority)
        return {key: kind for kind, those in types.items() for key in those}

    def _known(self) -> tuple[list[str], list[str]]:
        """Names of queues and holders; none where their registry is itself of the wrong type."""
        pipe = self._client.pipeline(transaction=False)
        pipe.srandmember(self._keys.queues, MOST_QUEUES)
        pipe.hkeys(self._keys.holders)
        names, holders = (
            [] if isinstance(each, redis.ResponseError) else [text(one) for one in each]
            for each in pipe.execute(raise_on_error=False)
        )
        return names, holders

    def put_away(self, misplaced: Misplaced) -> str | None:
        """Rename the key; its new name, or `None` where it was put right meanwhile."""
        key = misplaced.key
        copy = f"{self._keys.quarantine(key)}:{time.time_ns() // 1_000_000}:{secrets.token_hex(4)}"
        with self._client.pipeline(transaction=True) as pipe:
            pipe.watch(key)
            if text(pipe.type(key)) != misplaced.found:
                return None
            pipe.multi()
            pipe.rename(key, copy)
            pipe.expire(copy, TTL)
            pipe.zadd(self._keys.quarantined, {copy: time.time()})
            pipe.expire(self._keys.quarantined, TTL)
            try:
                pipe.execute()
            except redis.WatchError:
                return None
        self._prune(key)
        return copy

    def _prune(self, key: str) -> None:
        """Delete the oldest copies of this key, and of all, beyond the bounds."""
        copies = [text(each) for each in self._client.zrange(self._keys.quarantined, 0, -1)]
        of_key = [each for each in copies if each.rsplit(":", 2)[0] == self._keys.quarantine(key)]
        too_many = {*of_key[:-MOST_COPIES], *copies[:-MOST_IN_ALL]}
        if too_many:
            pipe = self._client.pipeline(transaction=True)
            pipe.unlink(*too_many)
            pipe.zrem(self._keys.quarantined, *too_many)
            pipe.execute()
