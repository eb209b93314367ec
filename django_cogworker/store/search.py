"""Looking for one job by its jid among those that wait, for a limited time.

Lists and sets are read in pages. A list is read from the end where new jobs come in: what is taken
away at the other end, meanwhile, moves nothing out of sight. The jobs in progress are few, and each
worker's are read at once.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import redis

from django_cogworker.store.keys import Keys

Where = Literal["queue", "schedule", "retry", "dead", "worker"]

PAGE = 500
#: What is due at a time that is known is looked for this near to it first (seconds).
NEAR = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Spotted:
    """A job that was found. `key` and `member` are what `Verbs.remove` takes; `at`: its score in a set, or
    when its worker fetched it.
    """

    where: Where
    key: str
    member: bytes
    payload: dict[str, Any]
    at: float | None = None
    worker: str = ""


class Search:
    """One search. `looked_at` counts entries; `in_time` is false where the time was over first."""

    def __init__(self, client: redis.Redis, keys: Keys, jid: str, budget: float) -> None:
        self._client: Any = client
        self._keys = keys
        self._jid = jid
        # As `payload.codec` writes it; a text of other hands may escape it in another way.
        self._mark = json.dumps(jid)[1:-1].encode()
        self._deadline = time.monotonic() + budget
        self.looked_at = 0
        self.in_time = True

    def in_set(self, where: Where, key: str, near: float | None = None) -> Spotted | None:
        """In a sorted set, at first near the score `near`, where that is known."""
        if near is not None:
            pages = iter(
                [
                    self._client.zrangebyscore(
                        key, near - NEAR, near + NEAR, 0, 20 * PAGE, withscores=True
                    )
                ]
            )
            found = self._among(where, key, pages)
            if found is not None:
                return found
        return self._among(where, key, self._pages(key))

    def in_queue(self, name: str) -> Spotted | None:
        queue = self._keys.queue(name)
        found = self._among("queue", queue.jobs, self._list_pages(queue.jobs))
        return found or self._among("queue", queue.priority, self._pages(queue.priority))

    def in_progress(self) -> Spotted | None:
        for identity in sorted(self._client.hkeys(self._keys.holders)):
            if self._is_late():
                return None
            found = self.in_worker(identity.decode("utf-8", "replace"))
            if found is not None:
                return found
        return None

    def in_worker(self, worker: str) -> Spotted | None:
        """Among the jobs that this worker holds: one round trip. `at` is when it fetched the job."""
        key = self._keys.workers(worker)
        held = []
        for field, value in self._client.hgetall(key).items():
            if field.isdigit():
                head, _, payload = value.partition(b"\n")
                fetched_ms = head.partition(b" ")[0]
                held.append((payload, int(fetched_ms) / 1000 if fetched_ms.isdigit() else 0.0))
        found = self._among("worker", key, iter([held]))
        return None if found is None else dataclasses.replace(found, worker=worker)

    def everywhere(self, queues: Sequence[str], *, dead: bool = True) -> Spotted | None:
        """On the queues, among the jobs in progress, in the sets."""
        for name in queues:
            found = self._safe(partial(self.in_queue, name))
            if found is not None:
                return found
        keys = self._keys
        sets: list[tuple[Where, str]] = [("schedule", keys.schedule), ("retry", keys.retry)]
        if dead:
            sets.append(("dead", keys.dead))
        found = self._safe(self.in_progress)
        for where, key in sets:
            if found is None:
                found = self._safe(partial(self.in_set, where, key))
        return found

    @staticmethod
    def _safe(look: Any) -> Spotted | None:
        """A key of the wrong type holds no job that could be found, and hinders no other look."""
        try:
            found: Spotted | None = look()
            return found
        except redis.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            return None

    def _is_late(self) -> bool:
        if time.monotonic() > self._deadline:
            self.in_time = False
        return not self.in_time

    def _pages(self, key: str) -> Iterator[list[tuple[bytes, float]]]:
        start = 0
        while page := self._client.zrange(key, start, start + PAGE - 1, withscores=True):
            yield page
            start += PAGE

    def _list_pages(self, key: str) -> Iterator[list[tuple[bytes, float]]]:
        start = 0
        while page := self._client.lrange(key, start, start + PAGE - 1):
            yield [(each, 0.0) for each in page]
            start += PAGE

    def _among(
        self, where: Where, key: str, pages: Iterator[list[tuple[bytes, float]]]
    ) -> Spotted | None:
        while not self._is_late():
            page = next(pages, None)
            if page is None:
                return None
            self.looked_at += len(page)
            for member, score in page:
                if self._mark not in member:
                    continue
                payload = self._read(member)
                if payload is not None:
                    at = None if where == "queue" else score
                    return Spotted(where, key, member, payload, at)
        return None

    def _read(self, member: bytes) -> dict[str, Any] | None:
        try:
            payload = json.loads(member)
        except (ValueError, RecursionError):
            return None
        if isinstance(payload, dict) and payload.get("jid") == self._jid:
            return payload
        return None
