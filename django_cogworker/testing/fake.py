"""The fake transport: collects jobs and runs them when asked, in memory.

A job waits, on its queue or until it is due; it runs; where errors are recorded it may wait for its next attempt,
or lie among the dead. `drain` takes the oldest and waits for no time; `run_due` takes what is due by the clock of
jobs, by priority. Jobs that wait for the commit of a transaction, which a `TestCase` never makes, are seen too, and
count as committed once they are to run.
"""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from django.core.signals import setting_changed

from django_cogworker import clock
from django_cogworker.client import commit
from django_cogworker.client.draining import Draining
from django_cogworker.client.transport import current_transport
from django_cogworker.exceptions import EmptyQueueError, TestModeError
from django_cogworker.parsers import check_queue_name
from django_cogworker.payload.codec import decode
from django_cogworker.store.values import Outgoing, Refusal
from django_cogworker.testing.attempt import Attempt, Fate
from django_cogworker.testing.claims import Claims
from django_cogworker.testing.held import Held, Ran
from django_cogworker.testing.how import How

#: So many jobs run at one moment of the clock; more of them means that a job enqueues itself for ever.
MOST_AT_ONCE = 10_000


class FakeTransport:
    """Holds jobs in memory."""

    waits_for_commit = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._held: list[Held] = []
        self._dead: list[dict[str, Any]] = []
        self._paused: set[str] = set()
        self._claims = Claims()

    # Enqueueing.

    def push(self, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        return [self._push_one(each) for each in jobs]

    def _push_one(self, job: Outgoing) -> Refusal | None:
        name = decode(job.payload)["class"]
        due = clock.now() if job.at is None else job.at
        with self._lock:
            refusal, ousted = self._claims.claim(job)
            if refusal is not None:
                return refusal
            if ousted:
                self._held = [each for each in self._held if each.job.jid not in ousted]
            self._held.append(Held(job, name, due, next(self._numbers)))
        return None

    def _commit(self, name: str | None = None) -> None:
        """Count the jobs of that class that wait for a commit in this thread as committed."""
        if current_transport() is not self:
            return
        for pending in commit.waiting(self):
            for job in list(pending.jobs):
                if name is None or decode(job.payload)["class"] == name:
                    pending.deliver(job)

    # Looking.

    def jobs(self, name: str | None = None) -> list[dict[str, Any]]:
        """The payloads of that class, or all, that wait and have not run yet; then those that wait for a commit
        in this thread and would not be refused.
        """
        with self._lock:
            waiting = [each.job for each in self._held if not each.retrying]
        claims = self._claims.copy()
        for job in [job for each in commit.waiting(self) for job in each.jobs]:
            refusal, ousted = claims.claim(job)
            if refusal is None:
                waiting = [*(each for each in waiting if each.jid not in ousted), job]
        return _of(name, [decode(each.payload) for each in waiting])

    def retrying(self, name: str | None = None) -> list[dict[str, Any]]:
        """The payloads that wait for their next attempt, the next one first."""
        with self._lock:
            found = sorted(self._held, key=lambda each: each.by_age)
        return _of(name, [each.payload for each in found if each.retrying])

    def dead(self, name: str | None = None) -> list[dict[str, Any]]:
        """The payloads that failed for good, the oldest first."""
        return _of(name, [dict(each) for each in self._dead])

    # Changing.

    def clear(self, name: str | None = None) -> None:
        """Forget the jobs of that class, or all: also those that are retrying or dead."""
        with self._lock:
            forgotten = [each for each in self._held if name is None or each.name == name]
            self._held = [each for each in self._held if each not in forgotten]
            self._dead = [each for each in self._dead if name not in (None, each["class"])]
        for each in forgotten:
            self._claims.ends(each.job)
        for pending in commit.waiting(self):
            pending.jobs = [
                job
                for job in pending.jobs
                if name is not None and decode(job.payload)["class"] != name
            ]

    def reset(self) -> None:
        """As new: nothing is held, no queue is paused."""
        self.clear()
        self._paused.clear()
        self._claims = Claims()

    def discard(self, jid: str) -> dict[str, Any] | None:
        """Forget one job, as if it had been cancelled; its payload, or `None` where there is none."""
        with self._lock:
            for each in self._held:
                if each.job.jid == jid:
                    self._held.remove(each)
                    self._claims.ends(each.job)
                    return each.payload
        for pending in commit.waiting(self):
            for job in pending.jobs:
                if job.jid == jid:
                    pending.jobs.remove(job)
                    return decode(job.payload)
        return None

    def pause(self, queue: str) -> None:
        """Run no job of that queue until `resume`."""
        self._paused.add(check_queue_name(queue))

    def resume(self, queue: str) -> None:
        self._paused.discard(check_queue_name(queue))

    # Running.

    def perform_one(self, name: str | None = None) -> Any:
        """Take the oldest job of that class, or of all, and run it. Raises `EmptyQueueError` where
        there is none.
        """
        how = How()
        while (held := self._oldest(name)) is not None:
            fate = self._run(held, how)
            if fate.was_run:
                return fate.ran.result
        paused = f" The queues {sorted(self._paused)} are paused." if self._paused else ""
        raise EmptyQueueError(f"No job of {name or 'any class'} is waiting.{paused}")

    def drain(self, name: str | None = None, **how: Unpack[Draining]) -> int:
        """Run jobs until none is left, those pushed meanwhile included; how many ran, each counted
        once however often its worker died. See `Draining`.
        """
        wanted, count = How(**how), 0
        while (held := self._oldest(name)) is not None:
            count += self._run(held, wanted).was_run
        return count

    def run_due(self, how: How, zone: dt.tzinfo | None = None) -> list[Ran]:
        """Run what is due by the clock of jobs, those pushed meanwhile included, until nothing is."""
        ran: list[Ran] = []
        while (held := self._next_due()) is not None:
            if len(ran) >= MOST_AT_ONCE:
                raise TestModeError(
                    f"More than {MOST_AT_ONCE} jobs ran at one moment, the last one {ran[-1]}: does it enqueue "
                    "itself? Give it a delay."
                )
            ran.append(self._run(held, how, zone).ran)
        return ran

    def next_time(self) -> float | None:
        """When the next job is due that waits for its time."""
        with self._lock:
            waiting = [each for each in self._held if each.waits_for_time and self._may_run(each)]
            return min((each.due for each in waiting), default=None)

    def _may_run(self, held: Held) -> bool:
        return held.job.queue not in self._paused

    def _oldest(self, name: str | None) -> Held | None:
        def wanted(each: Held) -> bool:
            return (name is None or each.name == name) and self._may_run(each)

        self._commit(name)
        with self._lock:
            return self._take(wanted, lambda each: each.by_age)

    def _next_due(self) -> Held | None:
        self._commit()
        now = clock.now()

        def is_due(each: Held) -> bool:
            return (each.due <= now or not each.waits_for_time) and self._may_run(each)

        with self._lock:
            return self._take(is_due, lambda each: each.by_time)

    def _take(self, wanted: Callable[[Held], bool], order: Callable[[Held], Any]) -> Held | None:
        held = min(filter(wanted, self._held), key=order, default=None)
        if held is not None:
            self._held.remove(held)
        return held

    def _run(self, held: Held, how: How, zone: dt.tzinfo | None = None) -> Fate:
        job = held.job
        self._claims.starts(job)
        try:
            fate = Attempt(job, how, zone).carry_out()
        except BaseException:
            self._claims.ends(job)
            raise
        if fate.again is not None:
            job.payload = fate.again
            self._claims.waits(job, fate.delay)
            due = clock.now() + fate.delay
            with self._lock:
                self._held.append(Held(job, held.name, due, next(self._numbers), retrying=True))
            return fate
        self._claims.ends(job)
        if fate.dead is not None:
            self._dead.append(fate.dead)
        return fate


def _of(name: str | None, payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in payloads if name is None or each["class"] == name]


_by_setting = FakeTransport()


def the_transport() -> FakeTransport:
    """The one that the setting `COGWORKER_TESTING` means."""
    return _by_setting


def _start_afresh(*, setting: str, **kwargs: Any) -> None:
    if setting == "COGWORKER_TESTING":
        _by_setting.reset()


setting_changed.connect(_start_afresh, dispatch_uid="django_cogworker.testing.fake")
