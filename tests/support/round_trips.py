"""Counting what goes to Redis and comes back: `with counted() as trips: …; assert trips.number == 2`.

A pipeline is one. What a new connection says of itself is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from redis.connection import Connection, UnixDomainSocketConnection


class RoundTrips:
    """`sent`: what was sent, each once."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    @property
    def number(self) -> int:
        return len(self.sent)


@contextmanager
def counted() -> Iterator[RoundTrips]:
    """Counts for all threads of this process."""
    trips = RoundTrips()
    patches = []
    for kind in (Connection, UnixDomainSocketConnection):
        real = kind.send_packed_command

        def send(self: Any, command: Any, *args: Any, real: Any = real, **options: Any) -> Any:
            sent = command if isinstance(command, bytes) else b"".join(command)
            words = sent.split(b"\r\n", 3)[2:3]
            if words[0].upper() not in (b"HELLO", b"CLIENT", b"AUTH", b"SELECT"):
                trips.sent.append(sent)
            return real(self, command, *args, **options)

        patches.append(mock.patch.object(kind, "send_packed_command", send))
    for each in patches:
        each.start()
    try:
        yield trips
    finally:
        for each in patches:
            each.stop()
