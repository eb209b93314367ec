"""Help for the tests of worker processes with the jobs of `tests/oddjobs`."""

from __future__ import annotations

import json
from typing import Any

import redis

from django_cogworker.payload.failure import read_attempt
from django_cogworker.store.keys import Keys
from tests.settings import INSTALLED_APPS
from tests.support.waiting import wait_until

KEYS = Keys("cogworker:")
#: For `start_worker(conf=…)`: the worker knows the odd jobs too.
ODD: dict[str, Any] = {"INSTALLED_APPS": [*INSTALLED_APPS, "tests.oddjobs"]}
HERE = "tests.oddjobs.jobs."


class Board:
    """What lies in Redis, read by jid."""

    def __init__(self, client: redis.Redis) -> None:
        self.client: Any = client

    def _members(self, key: str) -> dict[str, tuple[dict[str, Any], float]]:
        found: dict[str, tuple[dict[str, Any], float]] = {}
        for raw, score in self.client.zrange(key, 0, -1, withscores=True):
            payload = json.loads(raw)
            found[payload["jid"]] = (payload, score)
        return found

    def _wait(self, key: str, jid: str | None) -> tuple[dict[str, Any], float]:
        found: list[tuple[dict[str, Any], float]] = []

        def look() -> bool:
            found.extend(v for k, v in self._members(key).items() if k == jid)
            return bool(found)

        wait_until(look, message=f"{jid} in {key}")
        return found[0]

    def retrying(self, jid: str | None) -> tuple[dict[str, Any], float]:
        """Payload and due time; waits for it."""
        return self._wait(KEYS.retry, jid)

    def scheduled(self, jid: str | None) -> tuple[dict[str, Any], float]:
        return self._wait(KEYS.schedule, jid)

    def dead(self, jid: str | None) -> dict[str, Any]:
        return self._wait(KEYS.dead, jid)[0]

    def all_dead(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.client.zrange(KEYS.dead, 0, -1)]

    def all_retrying(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.client.zrange(KEYS.retry, 0, -1)]

    def attempts(self, jid: str | None) -> list[dict[str, Any]]:
        return [read_attempt(each) for each in self.client.lrange(KEYS.attempts(str(jid)), 0, -1)]

    def outcomes(self, jid: str | None) -> list[str]:
        return [each["outcome"] for each in self.attempts(jid)]

    def queue(self, name: str = "default") -> list[dict[str, Any]]:
        """What waits, the next to run first."""
        return [
            json.loads(each) for each in reversed(self.client.lrange(KEYS.queue(name).jobs, 0, -1))
        ]

    def in_progress(self) -> int:
        held = [self.client.hkeys(key) for key in self.client.scan_iter(KEYS.workers("*"))]
        return sum(field.isdigit() for fields in held for field in fields)

    def wait_until_settled(self) -> None:
        wait_until(lambda: self.in_progress() == 0, message="nothing in progress")

    @property
    def processed(self) -> int:
        return int(self.client.get(KEYS.processed) or 0)

    @property
    def failed(self) -> int:
        return int(self.client.get(KEYS.failed) or 0)

    def in_sets(self, jid: str | None) -> bool:
        keys = (KEYS.retry, KEYS.schedule, KEYS.dead)
        return any(str(jid) in self._members(key) for key in keys)

    def push_raw(self, raw: bytes, queue: str = "default") -> None:
        self.client.lpush(KEYS.queue(queue).jobs, raw)
        self.client.lpush(KEYS.queue(queue).tokens, "1")
