"""Transports: where encoded jobs go. Redis in earnest, a test mode's memory otherwise.

The test modes stand on a higher floor and register themselves by name; which one counts is decided
by the innermost context manager, then by the setting `COGWORKER_TESTING`.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Unpack, cast

import redis

from django_cogworker.client.draining import Draining
from django_cogworker.client.lanes import lanes
from django_cogworker.conf import get_config
from django_cogworker.exceptions import PushError, TestModeError
from django_cogworker.store.errors import is_ambiguous, is_out_of_memory, is_unavailable
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Outgoing, Refusal

logger = logging.getLogger("django_cogworker")

#: Seconds that a push goes on trying while Redis is away. `scripted.LANE_TTL` is far more than ten times this.
PATIENCE = 5.0


class Transport(Protocol):
    """Takes jobs. One verdict each: `None` for taken."""

    #: Whether jobs reach other processes, so that a push inside a transaction has to wait for its commit.
    waits_for_commit: bool

    def push(self, jobs: Sequence[Outgoing]) -> list[Refusal | None]: ...


class CollectingTransport(Transport, Protocol):
    """One that keeps the jobs and can be asked about them: fake mode. `name`: a job class's, or
    all.
    """

    def jobs(self, name: str | None = None) -> list[dict[str, Any]]: ...
    def clear(self, name: str | None = None) -> None: ...
    def perform_one(self, name: str | None = None) -> Any: ...
    def drain(self, name: str | None = None, **how: Unpack[Draining]) -> int: ...
    def discard(self, jid: str) -> dict[str, Any] | None: ...


class RedisTransport:
    """To Redis, once, whatever happens to the replies."""

    waits_for_commit = True

    def push(self, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        """Push in one step. Raises `PushError` after some seconds without Redis, or where it
        refuses.

        A push that follows one that gave up a moment ago tries only once: a transaction that
        enqueued a hundred jobs must not wait a hundred times.
        """
        store, lane = get_store(), lanes.lease()
        began = time.monotonic()
        patient = began - store.gave_up_at >= PATIENCE
        deadline = began + PATIENCE if patient else began
        ambiguous, pause, tries = False, 0.05, 0
        while True:
            try:
                verdicts = store.push(lane.id, lane.number, jobs)
                break
            except (redis.RedisError, OSError) as error:
                tries += 1
                ambiguous = ambiguous or is_ambiguous(error)
                passing = is_unavailable(error) and not is_out_of_memory(error)
                late = time.monotonic() + pause > deadline
                # A reply that never comes takes all our patience; then too it is asked for once more.
                if not passing or (late and (tries > 1 or not patient)):
                    if passing and patient:
                        store.gave_up_at = time.monotonic()
                    raise self._failed(jobs, error, ambiguous) from error
                if isinstance(error, redis.TimeoutError):
                    store.close()  # its other idle connections may be half-open as well
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, 1.0)
        store.gave_up_at = -math.inf
        if not ambiguous:
            lanes.give_back(lane)
        return verdicts

    @staticmethod
    def _failed(jobs: Sequence[Outgoing], error: Exception, ambiguous: bool) -> PushError:
        what = f"Job {jobs[0].jid}" if len(jobs) == 1 else f"{len(jobs)} jobs"
        tail = "; Redis may have taken it all the same" if ambiguous else ""
        return PushError(
            f"{what} could not be enqueued: {error}{tail}.",
            refused=[each.jid for each in jobs],
            ambiguous=ambiguous,
        )


_redis = RedisTransport()
_named: dict[str, Callable[[], Transport]] = {}
_overrides: list[Transport] = []


def register_transport(name: str, get: Callable[[], Transport]) -> None:
    """Make the transport that `get` returns known as a value of `COGWORKER_TESTING`."""
    _named[name] = get


def current_transport() -> Transport:
    if _overrides:
        return _overrides[-1]
    mode = get_config().testing
    return _redis if mode is None else _named[mode]()


def collecting_transport(asked_for: str) -> CollectingTransport:
    """The transport of fake mode. Raises `TestModeError` outside it, naming what was asked for."""
    transport = current_transport()
    if not hasattr(transport, "perform_one"):
        raise TestModeError(
            f"{asked_for} works in fake mode only: use testing.fake() or COGWORKER_TESTING = 'fake'."
        )
    return cast(CollectingTransport, transport)


def real_transport() -> Transport:
    return _redis


def is_test_mode() -> bool:
    """Whether jobs go to a test mode, and not to Redis."""
    return current_transport() is not _redis


def push_override(transport: Transport) -> None:
    """Put a transport in force for the whole process until `pop_override`."""
    _overrides.append(transport)


def pop_override(transport: Transport) -> None:
    for place in range(len(_overrides) - 1, -1, -1):
        if _overrides[place] is transport:
            del _overrides[place]
            return
