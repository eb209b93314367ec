"""The fake transport: collects jobs, oldest first, and runs them when asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from django.core.signals import setting_changed

from django_cogworker.client import commit
from django_cogworker.exceptions import EmptyQueueError
from django_cogworker.payload.codec import decode
from django_cogworker.store.values import Outgoing, Refusal
from django_cogworker.testing.claims import Claims
from django_cogworker.testing.running import run_here


class FakeTransport:
    """Holds jobs in memory."""

    waits_for_commit = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: list[tuple[str, Outgoing]] = []
        self._claims = Claims()

    def push(self, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        return [self._push_one(each) for each in jobs]

    def _push_one(self, job: Outgoing) -> Refusal | None:
        class_name = decode(job.payload)["class"]
        with self._lock:
            refusal, ousted = self._claims.claim(job)
            if refusal is not None:
                return refusal
            if ousted:
                self._jobs = [each for each in self._jobs if each[1].jid not in ousted]
            self._jobs.append((class_name, job))
        return None

    def jobs(self, name: str | None = None) -> list[dict[str, Any]]:
        """The collected payloads of that class, or all; then those that wait for a commit in this
        thread.
        """
        with self._lock:
            found = [decode(job.payload) for _, job in self._jobs]
        found += [decode(job.payload) for each in commit.waiting() for job in each.jobs]
        return [each for each in found if name is None or each["class"] == name]

    def clear(self, name: str | None = None) -> None:
        """Forget the jobs of that class, or all."""
        with self._lock:
            kept = [each for each in self._jobs if name is not None and each[0] != name]
            forgotten = [
                job for class_name, job in self._jobs if name is None or class_name == name
            ]
            self._jobs = kept
        for each in forgotten:
            self._claims.ends(each)
        for pending in commit.waiting():
            pending.jobs = [
                job
                for job in pending.jobs
                if name is not None and decode(job.payload)["class"] != name
            ]

    def perform_one(self, name: str | None = None) -> Any:
        """Take the oldest job of that class, or of all, and run it. Raises `EmptyQueueError` where
        there is none.
        """
        job = self._take(name)
        if job is None:
            raise EmptyQueueError(f"No job of {name or 'any class'} is waiting.")
        return self._run(job)

    def drain(self, name: str | None = None) -> int:
        """Run jobs until none is left, those pushed meanwhile included; how many ran."""
        count = 0
        while (job := self._take(name)) is not None:
            self._run(job)
            count += 1
        return count

    def _run(self, job: Outgoing) -> Any:
        self._claims.starts(job)
        try:
            return run_here(job.payload)
        finally:
            self._claims.ends(job)

    def discard(self, jid: str) -> dict[str, Any] | None:
        """Forget one job, as if it had been cancelled; its payload, or `None` where there is none."""
        with self._lock:
            for place, (_, job) in enumerate(self._jobs):
                if job.jid == jid:
                    del self._jobs[place]
                    self._claims.ends(job)
                    return decode(job.payload)
        for pending in commit.waiting():
            for job in pending.jobs:
                if job.jid == jid:
                    pending.jobs.remove(job)
                    self._claims.ends(job)
                    return decode(job.payload)
        return None

    def _take(self, name: str | None) -> Outgoing | None:
        with self._lock:
            for place, (class_name, job) in enumerate(self._jobs):
                if name is None or class_name == name:
                    del self._jobs[place]
                    return job
        for pending in commit.waiting():
            for job in pending.jobs:
                if name is None or decode(job.payload)["class"] == name:
                    pending.jobs.remove(job)
                    return job
        return None


_by_setting = FakeTransport()


def the_transport() -> FakeTransport:
    """The one that the setting `COGWORKER_TESTING` means."""
    return _by_setting


def _start_afresh(*, setting: str, **kwargs: Any) -> None:
    if setting == "COGWORKER_TESTING":
        _by_setting.clear()


setting_changed.connect(_start_afresh, dispatch_uid="django_cogworker.testing.fake")
