"""The context managers that choose a test mode, for the whole process, until they end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django_cogworker.client.transport import (
    Transport,
    collecting_transport,
    pop_override,
    push_override,
    real_transport,
)
from django_cogworker.testing.fake import FakeTransport
from django_cogworker.testing.inline import InlineTransport


@contextmanager
def _in_force(transport: Transport) -> Iterator[None]:
    push_override(transport)
    try:
        yield
    finally:
        pop_override(transport)


@contextmanager
def fake() -> Iterator[FakeTransport]:
    """Collect jobs instead of pushing them; each `with` begins empty."""
    transport = FakeTransport()
    with _in_force(transport):
        yield transport


@contextmanager
def inline() -> Iterator[None]:
    """Run jobs at once in the caller."""
    with _in_force(InlineTransport()):
        yield


@contextmanager
def disabled() -> Iterator[None]:
    """Push to the real Redis, whatever the setting says."""
    with _in_force(real_transport()):
        yield


def clear_all() -> None:
    """Forget all collected jobs. Raises `TestModeError` outside fake mode."""
    collecting_transport("clear_all").clear()


def drain_all() -> int:
    """Run all collected jobs, oldest first, until none is left; how many ran. Raises
    `TestModeError` outside fake mode.
    """
    return collecting_transport("drain_all").drain()
