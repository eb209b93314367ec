"""Assertions about collected jobs. They need fake mode and raise `TestModeError` outside it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django_cogworker.client.transport import CollectingTransport, collecting_transport
from django_cogworker.exceptions import TestModeError
from django_cogworker.testing.nearest import difference, elsewhere, facts_of

#: Seconds by which a due time may differ from the one asked for.
CLOSE = 1.0
#: So many jobs are listed in a message.
LISTED = 10


class Asserting:
    """The assertions, about the transport in force; who has a transport of its own overrides `_collected`."""

    def _collected(self, asked_for: str) -> CollectingTransport:
        return collecting_transport(asked_for)

    def assert_enqueued(
        self,
        job_class: Any,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        at: dt.datetime | float | None = None,
        count: int | None = None,
    ) -> list[dict[str, Any]]:
        """Assert that a job of the class is waiting that fits all that is given; the payloads that do.

        `at` fits within a second. With `count` exactly so many have to fit, without it at least one.
        """
        transport = self._collected("assert_enqueued")
        return _Look(transport, job_class, args, kwargs, queue, at).assert_there(count)

    def assert_not_enqueued(
        self,
        job_class: Any,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        at: dt.datetime | float | None = None,
    ) -> None:
        """Assert that no job of the class is waiting that fits all that is given."""
        transport = self._collected("assert_not_enqueued")
        _Look(transport, job_class, args, kwargs, queue, at).assert_none()

    def assert_num_jobs(self, num: int, job_class: Any = None, *, queue: str | None = None) -> None:
        """Assert that exactly so many jobs are waiting: of all classes, or of that one; on all queues, or
        on that one.
        """
        transport = self._collected("assert_num_jobs")
        found = transport.jobs(None if job_class is None else name_of(job_class))
        found = [each for each in found if queue in (None, each["queue"])]
        if len(found) != num:
            of = "" if job_class is None else f" of {name_of(job_class)}"
            on = "" if queue is None else f" on queue {queue!r}"
            raise AssertionError(
                f"{len(found)} jobs{of}{on} are waiting, wanted {num}. Waiting: "
                f"{_listed(found, with_class=True)}"
            )


_here = Asserting()
assert_enqueued = _here.assert_enqueued
assert_not_enqueued = _here.assert_not_enqueued
assert_num_jobs = _here.assert_num_jobs


def name_of(job_class: Any) -> str:
    """Its name in payloads. Raises `TestModeError` where it is none."""
    name = getattr(job_class, "job_name", None)
    if not isinstance(name, str):
        raise TestModeError(
            f"{job_class!r} is no job: give a Job class with perform, or what @job made."
        )
    return name


class _Look:
    """What one assertion asks for, and what it finds."""

    def __init__(
        self,
        transport: CollectingTransport,
        job_class: Any,
        args: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
        queue: str | None,
        at: dt.datetime | float | None,
    ) -> None:
        self._transport = transport
        self._name = name_of(job_class)
        given = {
            "args": None if args is None else list(args),
            "kwargs": None if kwargs is None else dict(kwargs),
            "queue": queue,
            "at": at.timestamp() if isinstance(at, dt.datetime) else at,
        }
        self._asked = {name: value for name, value in given.items() if value is not None}
        said = {"args": args, "kwargs": kwargs, "queue": queue, "at": at}
        named = [f"{name}={value!r}" for name, value in said.items() if value is not None]
        self._said = f" with {', '.join(named)}" if named else ""
        self._every = transport.jobs(self._name)
        self._fitting = [each for each in self._every if self._fits(facts_of(each))]

    def assert_there(self, count: int | None) -> list[dict[str, Any]]:
        fitting = self._fitting
        if not fitting if count is None else len(fitting) != count:
            wanted = "at least one" if count is None else str(count)
            raise AssertionError(
                f"{self._name}: {len(fitting)} fitting jobs, wanted {wanted}{self._said}. "
                f"Waiting: {_listed(self._every)}{self._hint()}"
            )
        return fitting

    def assert_none(self) -> None:
        if self._fitting:
            raise AssertionError(
                f"{self._name}: {len(self._fitting)} fitting jobs, wanted none{self._said}. "
                f"Fitting: {_listed(self._fitting)}"
            )

    def _fits(self, facts: dict[str, Any]) -> bool:
        for name, wanted in self._asked.items():
            found = facts[name]
            if name == "at":
                if found is None or abs(found - wanted) > CLOSE:
                    return False
            elif found != wanted:
                return False
        return True

    def _hint(self) -> str:
        rest = [each for each in self._every if each not in self._fitting]
        lines = [difference(self._asked, rest)]
        if not self._every:
            others = elsewhere(self._transport.jobs())
            lines.append(f"Of other classes there are: {others}." if others else "")
        said = "\n".join(filter(None, lines))
        return f"\n{said}" if said else ""


def _listed(payloads: list[dict[str, Any]], *, with_class: bool = False) -> str:
    if not payloads:
        return "none."
    shown = []
    for each in payloads[:LISTED]:
        facts = " ".join(f"{name}={value!r}" for name, value in facts_of(each).items())
        shown.append(f"{each['class']} {facts}" if with_class else facts)
    left = len(payloads) - LISTED
    return "; ".join(shown) + (f" … and {left} more" if left > 0 else "") + "."
