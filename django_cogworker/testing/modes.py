"""The context managers that choose a test mode, for the whole process, until they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Unpack, cast

from asgiref.sync import sync_to_async

from django_cogworker.client.draining import Chaos, Draining
from django_cogworker.client.transport import (
    Transport,
    collecting_transport,
    pop_override,
    push_override,
    real_transport,
)
from django_cogworker.testing.fake import FakeTransport
from django_cogworker.testing.frozen import Follow, FrozenClock, freeze
from django_cogworker.testing.inline import InlineTransport
from django_cogworker.testing.moments import Moment, Zone
from django_cogworker.testing.toolkit import Jobs


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
def collect() -> Iterator[Jobs]:
    """`fake()`, with the whole toolkit: see `Jobs`."""
    with fake() as transport:
        yield Jobs(transport)


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


def drain_all(**how: Unpack[Draining]) -> int:
    """Run all collected jobs, oldest first, until none is left; how many ran. For `how` see
    `Draining`. Raises `TestModeError` outside fake mode.
    """
    return collecting_transport("drain_all").drain(**how)


async def adrain_all(**how: Unpack[Draining]) -> int:
    """`drain_all` for coroutines; the jobs run in the thread for synchronous code."""
    return await sync_to_async(drain_all)(**how)


def frozen(
    moment: Moment | None = None,
    *,
    tz: Zone = None,
    periodic: bool | Sequence[str] = True,
    follow: Follow | None = None,
    **chaos: Unpack[Chaos],
) -> AbstractContextManager[FrozenClock]:
    """Freeze the time of the jobs that are collected now: see `Jobs.frozen`. Raises `TestModeError`
    outside fake mode.
    """
    transport = cast(FakeTransport, collecting_transport("frozen"))
    return freeze(transport, moment, tz=tz, periodic=periodic, follow=follow, **chaos)
