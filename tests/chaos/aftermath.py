"""After the faults: wait until every job has come to its end, then see what is left in Redis."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from django_cogworker.store.keys import Keys
from tests.chaos.records import Grave

KEYS = Keys("cogworker:")
QUEUES = ("default", "low")
#: Nothing may stand still for so long: a suspect waits 30 + 15 s, and a dead worker whose beats were lost too
#: is found within a minute.
STANDSTILL = 90.0


def waiting(client: Any) -> dict[str, int]:
    """How many jobs lie where, those in progress included; what is empty is left out."""
    sizes = {
        "schedule": client.zcard(KEYS.schedule),
        "retry": client.zcard(KEYS.retry),
        "in progress": sum(client.hlen(key) for key in client.scan_iter(KEYS.workers("*"))),
    }
    for queue in QUEUES:
        keys = KEYS.queue(queue)
        sizes[queue] = client.llen(keys.jobs) + client.zcard(keys.priority)
    return {name: size for name, size in sizes.items() if size}


def drain(client: Any, tend: Callable[[], None], journal_size: Callable[[], int]) -> str:
    """Wait until nothing waits; '' or what still does, when nothing has moved for too long."""
    moved_at, before = time.monotonic(), ""
    while left := waiting(client):
        tend()
        now = f"{left} {journal_size()}"
        if now != before:
            moved_at, before = time.monotonic(), now
        if time.monotonic() - moved_at > STANDSTILL:
            return ", ".join(f"{size} in {name}" for name, size in left.items())
        time.sleep(0.1)
    return ""


def graves(client: Any) -> list[Grave]:
    """The dead set."""
    found = []
    for raw in client.zrange(KEYS.dead, 0, -1):
        payload = json.loads(raw)
        found.append(
            Grave(
                str((payload.get("args") or ["?"])[0]),
                str(payload.get("error_class", "")),
                str(payload.get("error_message", "")),
            )
        )
    return found


def leftovers(client: Any) -> Iterator[str]:
    """What lies in Redis though no worker is left: what has neither TTL nor bound, each with the reason."""
    single = {KEYS.processed, KEYS.failed, KEYS.fleet_since, KEYS.dead, KEYS.queues}
    tokens = {KEYS.due_tokens, *(KEYS.queue(each).tokens for each in QUEUES)}
    for raw in client.scan_iter(count=1000):
        key = raw.decode()
        if key in single or client.ttl(key) >= 0:
            continue
        if key in tokens and client.llen(key) <= 1:
            continue
        if client.exists(key):
            kind = client.type(key).decode()
            yield f"{key} ({kind}: {_content(client, key, kind)}) has no owner, bound or TTL"


def _content(client: Any, key: str, kind: str) -> str:
    read = {
        "zset": lambda: client.zrange(key, 0, 2, withscores=True),
        "hash": lambda: client.hgetall(key),
        "set": lambda: client.smembers(key),
        "list": lambda: client.lrange(key, 0, 2),
        "string": lambda: client.get(key),
    }.get(kind)
    return str(read())[:300] if read else ""
