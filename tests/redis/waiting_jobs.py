"""Help for the tests of what waits: jobs put into Redis as they would lie there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.redis.lost import payload

QUEUE = "cogworker:queue:default"
SCHEDULE, RETRY, DEAD = "cogworker:schedule", "cogworker:retry", "cogworker:dead"


def failed(name: str, **fields: Any) -> bytes:
    """A job that has failed once."""
    more = {
        "created_at": 1.0,
        "failed_at": 2.0,
        "retry_count": 1,
        "error_class": "ValueError",
        "error_message": f"{name} went wrong",
    }
    return payload(name, **{**more, **fields})


def put(client: Any, key: str, *names: str, at: float = 100.0, **fields: Any) -> list[bytes]:
    """Into a set, one second after the other."""
    make = payload if key == SCHEDULE else failed
    members = [make(each, **fields) for each in names]
    client.zadd(key, {each: at + number for number, each in enumerate(members)})
    return members


def enqueue(client: Any, *names: str, queue: str = "default", **fields: Any) -> list[bytes]:
    """On the list of a queue, the first one to run first."""
    members = [payload(each, queue=queue, created_at=1.0, **fields) for each in names]
    client.lpush(f"cogworker:queue:{queue}", *members)
    client.sadd("cogworker:queues", queue)
    return members


def jids(entries: Sequence[Any]) -> list[str]:
    return [each.jid for each in entries]


def queued(client: Any, queue: str = "default") -> list[str]:
    """Jids on the list, the next to run first."""
    raw = client.lrange(f"cogworker:queue:{queue}", 0, -1)
    return [json.loads(each)["jid"] for each in reversed(raw)]


def in_set(client: Any, key: str) -> list[str]:
    return [json.loads(each)["jid"] for each in client.zrange(key, 0, -1)]


def outcomes(verdicts: Sequence[Any]) -> list[str]:
    return [each.outcome for each in verdicts]
