"""The keys of the history. `docs/internals/redis.md` has their types and bounds."""

from __future__ import annotations

import time
from functools import lru_cache

from django_cogworker.store.keys import Keys

FEATURE = "history"

DAY = 86_400
HOUR = 3_600
#: Hours that class times are told of unless more are asked for, and at the most, besides the one that has begun.
HOURS = 24
MAX_HOURS = 7 * 24
#: How long an hour's times are kept: until they are out of every view.
TIMES_TTL = (MAX_HOURS + 2) * HOUR
#: Job classes that times are kept of.
MAX_CLASSES = 1_000


def runs(keys: Keys, status: str) -> str:
    """sorted set: score = when it ended, member = record of a run. `status` is success or failed."""
    return keys.of(FEATURE, status)


@lru_cache(maxsize=8)
def date_of(day: int) -> str:
    """The date of a day, counted from the epoch, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(day * DAY))


def daily(keys: Keys, day: int) -> str:
    """hash: `success` and `failed` of one day in UTC, counted from the epoch."""
    return keys.of(FEATURE, "daily", date_of(day))


def classes(keys: Keys) -> str:
    """sorted set: job classes that ran, scored by when they last did."""
    return keys.of(FEATURE, "classes")


def times(keys: Keys, job_class: str, hour: int) -> str:
    """hash: of one class in one hour `success`, `failed`, and how many runs fell into each bucket of run time
    (`r<n>`) and waiting time (`w<n>`).
    """
    return keys.of(FEATURE, "times", job_class, str(hour))
