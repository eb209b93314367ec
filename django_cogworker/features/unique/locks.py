"""The locks in Redis: their keys, and what the core's steps do with them.

* `unique:lock:<key>` text: the jid of the job that has it. Claimed by the push, or (`while_executing`) at
  the start; TTL.
* `unique:replaced:<key>` hash: jid of a job whose lock a newer one took over → when. Such a job is dropped
  when its turn comes. Fields go with their jobs; TTL.
* `unique:waiters:<key>` sorted set: jobs that found the lock taken at their start (`while_executing`), exactly as
  they lie in the scheduled set; scored by the moment since which they could have run. Whatever frees the lock
  makes the first of them due at once. The first `LINE`; TTL.
* `unique:index` sorted set: `<key> <jid>`, a new line, `<class>`; scored by the moment when the lock ends
  at the latest. Only for those who look; the newest `INDEXED`.
"""

from __future__ import annotations

import math
import time
from typing import Any

from django_cogworker.conf import get_config
from django_cogworker.features.unique.options import UNTIL, UNTIL_EXECUTING, WHILE_EXECUTING
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Effect, Guard

#: So many locks can be listed; further ones work all the same.
INDEXED = 100_000
#: So many of those that wait for one lock stand in line; further ones find it free when they look again.
LINE = 1_000
#: The lock of a running job outlives its worker by this much more than recovery needs (seconds).
MARGIN = 120
#: Recovery may let a job wait before it runs again (seconds).
RECOVERY_WAIT = 60.0


class Lock:
    """The lock that a payload asks for."""

    __slots__ = ("jid", "job_class", "key", "keys", "mode", "ttl")

    def __init__(self, keys: Keys, payload: dict[str, Any], mode: str, key: str) -> None:
        config = get_config()
        self.keys, self.mode, self.key = keys, mode, key
        self.jid: str = payload["jid"]
        self.job_class: str = payload["class"]
        if mode == WHILE_EXECUTING:
            self.ttl: float = config.orphan_threshold + MARGIN
        else:
            ttl = payload.get("unique_ttl")
            good = isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and 0 < ttl < 1e12
            self.ttl = float(ttl) if good and ttl is not None else config.unique_lock_ttl

    @property
    def held_by_push(self) -> bool:
        return self.mode in UNTIL

    @property
    def name(self) -> str:
        return name_of(self.keys, self.key)

    @property
    def waiters(self) -> str:
        return waiters_of(self.keys, self.key)

    @property
    def replaced(self) -> str:
        return self.keys.of("unique", "replaced", self.key)

    @property
    def index(self) -> str:
        return self.keys.of("unique", "index")

    @property
    def member(self) -> str:
        return f"{self.key} {self.jid}\n{self.job_class}"

    def guard(self, wait: float = 0.0, *, takes: bool = False) -> Guard:
        """The claim of the push, of a job that waits so many seconds before it is due."""
        ttl = whole(self.ttl + wait)
        through = self.mode != UNTIL_EXECUTING
        if takes:
            return Guard(self.name, self.jid, ttl, "take", self.replaced, through)
        return Guard(self.name, self.jid, ttl, through_run=through)

    def awaited(self, since: float) -> Effect:
        """The job stands in line from now on."""
        return Effect("enlist", self.waiters, (f"{since:.6f}", LINE, whole(self.ttl)))

    def given_up(self) -> tuple[Effect, ...]:
        """The job stands in line no more: it is looked at again, or gone."""
        return () if self.held_by_push else (Effect("delist", self.waiters),)

    def listed(self, wait: float = 0.0) -> Effect:
        now = time.time()
        ends = now + whole(self.ttl + wait)
        return Effect("record", self.index, (f"{ends:.3f}", self.member, f"{now:.3f}", INDEXED))

    def held(self, wait: float = 0.0) -> tuple[Effect, ...]:
        """It is the job's for as long as it may have to wait, and then for its TTL."""
        hold = Effect("hold", self.name, (self.jid, whole(self.ttl + wait)))
        return hold, self.listed(wait)

    def extended(self) -> tuple[Effect, ...]:
        """Never taken anew: the job may have ended in this very moment."""
        longer = Effect("expire_if_owner", self.name, (self.jid, whole(self.ttl)))
        return longer, self.listed()

    def freed(self) -> tuple[Effect, ...]:
        """It is nobody's any more, if it was the job's."""
        return (
            Effect("delete_if_owner", self.name, (self.jid,)),
            Effect("forget", self.index, (self.member,)),
        )

    def ended(self) -> tuple[Effect, ...]:
        """The job has come to its end."""
        if not self.held_by_push:
            return (*self.freed(), passed_on(self.keys, self.key))
        return (*self.freed(), Effect("hdel", self.replaced, (self.jid,)))


def name_of(keys: Keys, key: str) -> str:
    return keys.of("unique", "lock", key)


def waiters_of(keys: Keys, key: str) -> str:
    return keys.of("unique", "waiters", key)


def passed_on(keys: Keys, key: str) -> Effect:
    """Where nobody has the lock, the first in line is due at once."""
    others = (name_of(keys, key), keys.schedule, keys.due_tokens)
    return Effect("hasten", waiters_of(keys, key), others=others)


def whole(seconds: float) -> int:
    """A TTL as Redis takes it: rounded up."""
    return max(1, math.ceil(seconds))


def lock_of(keys: Keys, payload: dict[str, Any]) -> Lock | None:
    """The lock of a payload, or `None` for a job that is not unique."""
    mode, key = payload.get("unique"), payload.get("unique_key")
    if not mode or not isinstance(key, str) or not isinstance(mode, str):
        return None
    if mode not in UNTIL and mode != WHILE_EXECUTING:
        return None  # of a newer version: it runs as if it were not unique
    return Lock(keys, payload, mode, key)
