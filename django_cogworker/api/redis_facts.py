"""What the server that holds the jobs says of itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import redis

from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True, slots=True)
class RedisFacts:
    """`None` is "it does not tell". Sizes are bytes, `uptime` seconds; `memory_limit` is 0 where there is none.

    `where` names the server without credentials, `product` is `redis` or `valkey`.
    """

    where: str
    product: str
    version: str | None
    uptime: int | None
    connections: int | None
    memory: int | None
    memory_peak: int | None
    memory_limit: int | None


def redis_facts() -> RedisFacts:
    """Ask it. One round trip."""
    store = get_store()
    pipe: Any = store.client.pipeline(transaction=False)
    for each in ("server", "clients", "memory"):
        pipe.info(each)
    told: dict[str, Any] = {}
    for answer in pipe.execute(raise_on_error=False):
        if isinstance(answer, redis.ResponseError):
            continue  # INFO may be forbidden; then nothing is known
        if isinstance(answer, Exception):
            raise answer
        told.update(answer)
    own = told.get("valkey_version")
    return RedisFacts(
        where=store.description,
        product="valkey" if own else "redis",
        version=_text(own or told.get("redis_version")),
        uptime=_whole(told.get("uptime_in_seconds")),
        connections=_whole(told.get("connected_clients")),
        memory=_whole(told.get("used_memory")),
        memory_peak=_whole(told.get("used_memory_peak")),
        memory_limit=_whole(told.get("maxmemory")),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
