"""`Jobs`: the jobs of one test, and all that a test does with them. What the fixture `jobs`, `CogworkerTestCase`
and `collect()` give.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Unpack

from asgiref.sync import sync_to_async

from django_cogworker.client.draining import Chaos, Draining
from django_cogworker.client.transport import CollectingTransport
from django_cogworker.testing.assertions import Asserting, name_of
from django_cogworker.testing.fake import FakeTransport
from django_cogworker.testing.frozen import Follow, FrozenClock, freeze
from django_cogworker.testing.held import Ran
from django_cogworker.testing.how import How
from django_cogworker.testing.moments import Moment, Zone


class Jobs(Asserting):
    """The collected jobs. Payloads are dicts as in `SomeJob.jobs`."""

    def __init__(self, transport: FakeTransport) -> None:
        self._transport = transport

    # Looking.

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """Those that have not run yet, the oldest first, scheduled ones included."""
        return self._transport.jobs()

    @property
    def scheduled(self) -> list[dict[str, Any]]:
        """Those of them with a due time, the earliest first."""
        return sorted((each for each in self.waiting if "at" in each), key=lambda each: each["at"])

    @property
    def retrying(self) -> list[dict[str, Any]]:
        """Those that failed and wait for their next attempt, the next one first."""
        return self._transport.retrying()

    @property
    def dead(self) -> list[dict[str, Any]]:
        """Those that failed for good, the oldest first."""
        return self._transport.dead()

    def _collected(self, asked_for: str) -> CollectingTransport:
        return self._transport

    # Running.

    def drain(self, job_class: Any = None, **how: Unpack[Draining]) -> int:
        """Run jobs, of all classes or of one, until none is left; how many ran. Waits for no due time. For
        `how` see `Draining`.
        """
        return self._transport.drain(_name(job_class), **how)

    async def adrain(self, job_class: Any = None, **how: Unpack[Draining]) -> int:
        """`drain` for coroutines; the jobs run in the thread for synchronous code."""
        return await sync_to_async(self.drain)(job_class, **how)

    def perform_one(self, job_class: Any = None) -> Any:
        """Run the oldest one; its return value. Raises `EmptyQueueError` where there is none."""
        return self._transport.perform_one(_name(job_class))

    def run_due(self, **how: Unpack[Draining]) -> list[Ran]:
        """Run what is due by the clock; what ran, in order. For tests whose clock is moved by others."""
        return self._transport.run_due(How(**how))

    def frozen(
        self,
        moment: Moment | None = None,
        *,
        tz: Zone = None,
        periodic: bool | Sequence[str] = True,
        follow: Follow | None = None,
        **chaos: Unpack[Chaos],
    ) -> AbstractContextManager[FrozenClock]:
        """Freeze the time of jobs at that moment, by default now; local times are in `tz`, by default
        `TIME_ZONE`.

        `periodic`: whether periodic entries become jobs as time passes: all, none, or those of these names.
        `follow` is called with each new moment, so that other clocks stand there too.
        """
        return freeze(self._transport, moment, tz=tz, periodic=periodic, follow=follow, **chaos)

    # Changing.

    def clear(self, job_class: Any = None) -> None:
        """Forget all jobs, or those of one class, whatever their state."""
        self._transport.clear(_name(job_class))

    def pause(self, queue: str) -> None:
        """Run no job of that queue until `resume`."""
        self._transport.pause(queue)

    def resume(self, queue: str) -> None:
        """Run jobs of that queue again."""
        self._transport.resume(queue)


def _name(job_class: Any) -> str | None:
    return None if job_class is None else name_of(job_class)
