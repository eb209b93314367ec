"""Run and waiting times of each job class in the last 24 hours, or up to seven days, out of its histograms.

They are kept by the hour, so what is told covers the hour that has begun and those before it.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.history import names
from django_cogworker.features.history.buckets import percentile
from django_cogworker.features.history.writing import FAILED, SUCCESS
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store

#: Classes whose hours are asked for in one round trip.
BATCH = 40


@dataclasses.dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds that 50, 95 and 99 % of the runs did not exceed, within 9 %; `None` where there are none.

    A millisecond stands for all that is shorter.
    """

    p50: float | None
    p95: float | None
    p99: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class ClassStats:
    """One job class in the last 24 hours, or as many as were asked for.

    `runs` counts attempts that ended, `failures` those of them that failed; `seconds` is how long they took, `wait` how
    long the jobs had been on their queue.
    """

    job_class: str
    runs: int
    failures: int
    seconds: Percentiles
    wait: Percentiles


@dataclasses.dataclass(frozen=True, slots=True)
class ClassHour:
    """One job class in one hour, or in a few, which began at `at` (epoch seconds)."""

    at: int
    runs: int
    failures: int
    seconds: Percentiles
    wait: Percentiles


@dataclasses.dataclass(frozen=True, slots=True)
class ClassTimes:
    """One job class over some time: in all, and hour by hour, the oldest first."""

    stats: ClassStats
    hours: list[ClassHour]


def class_names() -> list[str]:
    """The names of the job classes that ran in the last 24 hours, sorted. One round trip."""
    store = get_store()
    client: Any = store.client
    since = _hours()[0] * names.HOUR
    found = client.zrangebyscore(names.classes(store.keys), since, "+inf")
    return sorted(text(each) for each in found)


def class_stats(classes: Iterable[str] | None = None) -> list[ClassStats]:
    """Every job class that ran in the last 24 hours, by name, or those of these names. O(classes)."""
    known = class_names() if classes is None else list(classes)
    stats = [
        each for at in range(0, len(known), BATCH) for each in _stats_of(known[at : at + BATCH])
    ]
    return [each for each in stats if each.runs]


def percentiles(job_class: Any) -> ClassStats:
    """The same of one job class, or its name. One that did not run has 0 runs. O(1)."""
    return _stats_of([_name_of(job_class)])[0]


def class_hours(job_class: Any) -> list[ClassHour]:
    """One job class, or its name, hour by hour: the oldest first, ending with the one that has begun. O(1)."""
    return class_times(job_class).hours


def class_times(job_class: Any, hours: int = names.HOURS, every: int = 1) -> ClassTimes:
    """One job class, or its name, over the last `hours` (1 to 168) and the one that has begun. One round trip.

    `every`: so many hours (1 to 24) make one of `ClassTimes.hours`. They begin with the day in UTC, so the first is
    whole and begins up to `every` hours later; the last has only begun. O(hours). Raises `InvalidQuery`.
    """
    asked: list[tuple[str, Any, int]] = [("hours", hours, names.MAX_HOURS), ("every", every, 24)]
    for label, value, most in asked:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidQuery(f"{label} is {value!r}; it takes a whole number from 1 to {most}.")
    name, span = _name_of(job_class), _hours(hours)
    if len(span) > every:
        span = range(span.start + -span.start % every, span.stop)
    tables = _tables([name], span)
    parts = []
    for at in range(0, len(span), every):
        one = _summed(name, tables[at : at + every])
        parts.append(
            ClassHour(span[at] * names.HOUR, one.runs, one.failures, one.seconds, one.wait)
        )
    return ClassTimes(_summed(name, tables), parts)


def _name_of(job_class: Any) -> str:
    return str(getattr(job_class, "job_name", job_class))


def _hours(hours: int = names.HOURS) -> range:
    now = int(time.time() // names.HOUR)
    return range(now - hours, now + 1)


def _tables(classes: Sequence[str], hours: range) -> list[dict[bytes, bytes]]:
    store = get_store()
    pipe: Any = store.client.pipeline(transaction=False)
    for each in classes:
        for hour in hours:
            pipe.hgetall(names.times(store.keys, each, hour))
    found: list[dict[bytes, bytes]] = pipe.execute()
    return found


def _stats_of(classes: Sequence[str]) -> list[ClassStats]:
    hours = _hours()
    tables, many = _tables(classes, hours), len(hours)
    return [_summed(each, tables[at * many : (at + 1) * many]) for at, each in enumerate(classes)]


def _summed(job_class: str, tables: Sequence[dict[bytes, bytes]]) -> ClassStats:
    sums: Counter[str] = Counter()
    for table in tables:
        for field, value in table.items():
            if value.isdigit():
                sums[text(field)] += int(value)
    failures = sums.pop(FAILED, 0)
    runs = sums.pop(SUCCESS, 0) + failures
    return ClassStats(job_class, runs, failures, _percentiles(sums, "r"), _percentiles(sums, "w"))


def _percentiles(sums: Counter[str], kind: str) -> Percentiles:
    counts = {
        int(field[1:]): number
        for field, number in sums.items()
        if field[0] == kind and field[1:].isdigit()
    }
    return Percentiles(*(percentile(counts, share) for share in (0.5, 0.95, 0.99)))
