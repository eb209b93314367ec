"""A collected job, and what is told of a run of one."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

from django_cogworker.payload.codec import decode
from django_cogworker.store.values import Outgoing


@dataclasses.dataclass(slots=True)
class Held:
    """A job that waits. `due` in epoch seconds; `number` is its place among all."""

    job: Outgoing
    name: str
    due: float
    number: int
    #: It has failed, and waits for its next attempt.
    retrying: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        return decode(self.job.payload)

    @property
    def waits_for_time(self) -> bool:
        """False for one that is on its queue, whenever that was: clocks of tests are set at will."""
        return self.retrying or self.job.at is not None

    @property
    def by_age(self) -> tuple[bool, float, int]:
        """For `drain`: the oldest first, then retries as they are due."""
        return (self.retrying, self.due if self.retrying else 0.0, self.number)

    @property
    def by_time(self) -> tuple[int, float, int]:
        """For the frozen clock: what is due by priority, then by its time."""
        return (-self.job.priority, self.due, self.number)


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """What became of a job when its time had come.

    `job_class` is the class, or what `@job` made; `at` the time of the clock; `attempt` 1 for the first run.
    `outcome`: `finished`, `retrying`, `dead`, `killed`, `discarded`, or what a feature dropped it for
    (`expired`); `error` what it raised.
    """

    job_class: Any
    jid: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    queue: str
    at: dt.datetime
    attempt: int
    outcome: str
    result: Any = None
    error: BaseException | None = None

    def __str__(self) -> str:
        given = [*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.kwargs.items())]
        name = getattr(self.job_class, "job_name", self.job_class)
        return f"{self.at:%Y-%m-%d %H:%M:%S} {name}({', '.join(given)}) {self.outcome}"
