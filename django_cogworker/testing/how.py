"""How jobs are to be run, checked: what the keywords of `drain` say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Unpack, get_args

from django_cogworker.client.draining import Crash, Draining, Errors
from django_cogworker.exceptions import TestModeError

#: The last line of its code before which `everywhere` kills a job: the trials of a long loop would never end.
LAST_LINE = 500
#: Before which line, on average, `random` kills.
MEAN_LINE = 8

BEFORE, AFTER = 0, None
#: Where a worker dies: before the job's code, before its n-th line, or (`None`) after it.
Point = int | None


class How:
    """For one call of `drain`, or all of one frozen clock. Raises `TestModeError` for what is unknown."""

    def __init__(self, **given: Unpack[Draining]) -> None:
        self.errors: Errors = given.pop("errors", "raise")
        if self.errors not in get_args(Errors):
            raise TestModeError(f"errors={self.errors!r}; allowed are 'raise' and 'record'.")
        self._run_twice = given.pop("run_twice", False)
        self._crash = given.pop("crash", None)
        if self._crash is not None and self._crash not in get_args(Crash):
            allowed = ", ".join(map(repr, get_args(Crash)))
            raise TestModeError(f"crash={self._crash!r}; allowed are {allowed}.")
        if "seed" in given and self._crash != "random":
            raise TestModeError(
                f"seed={given['seed']!r} means nothing without crash='random', which draws by it."
            )
        self._seed = given.pop("seed", 0)
        if given:
            allowed = "errors, run_twice, crash and seed"
            raise TestModeError(f"{', '.join(given)} means nothing here; allowed are {allowed}.")
        self._random = random.Random(self._seed)

    def deaths(self) -> Iterator[Point]:
        """Where the worker dies while it runs one job, in order. Closed where one came too late."""
        if self._crash == "before":
            yield BEFORE
        elif self._crash == "after":
            yield AFTER
        elif self._crash == "random":
            for _ in range(self._random.randint(1, 3)):
                line = 1 + int(self._random.expovariate(1 / MEAN_LINE))
                yield self._random.choice((BEFORE, AFTER, line, line))
        elif self._crash == "everywhere":
            yield from range(LAST_LINE + 1)
        if self._run_twice:
            yield AFTER

    @property
    def tries_all_lines(self) -> bool:
        return self._crash == "everywhere"

    def __str__(self) -> str:
        said = [] if self._crash is None else [f"crash={self._crash!r}"]
        if self._crash == "random":
            said.append(f"seed={self._seed!r}")
        if self._run_twice:
            said.append("run_twice=True")
        return ", ".join(said)
