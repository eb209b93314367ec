"""Counting round trips to Redis: what is sent at once, a pipeline as one.

with counted_trips() as trips:
    ...
assert trips.count == 1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis.connection


@dataclasses.dataclass
class Trips:
    """How often something was sent."""

    count: int = 0


@contextmanager
def counted_trips() -> Iterator[Trips]:
    """Of all clients of this process. A new connection's greetings are not counted: it opens none where one is idle."""
    trips = Trips()
    kind: Any = redis.connection.AbstractConnection
    send = kind.send_packed_command

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, "_sock", None) is not None and not _greets(args[0]):
            trips.count += 1
        return send(self, *args, **kwargs)

    kind.send_packed_command = counting
    try:
        yield trips
    finally:
        kind.send_packed_command = send


def _greets(packed: Any) -> bool:
    text = b"".join(packed) if not isinstance(packed, bytes) else packed
    return any(word in text[:60] for word in (b"CLIENT", b"HELLO", b"SELECT", b"AUTH"))
