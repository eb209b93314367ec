"""`@periodic`: an entry that stands beside its job.

@periodic("0 9 * * *", tz="Europe/Paris")
class Remind(Job):
    def perform(self) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack

from django_cogworker.exceptions import InvalidPeriodicEntry
from django_cogworker.features.periodic import entries
from django_cogworker.jobs.options import JobOptions

J = TypeVar("J")


def periodic(
    cron: str,
    *,
    name: str | None = None,
    tz: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    catch_up: Literal["once", "skip", "all"] = "once",
    limit: int | None = None,
    run_at_first_start: bool = False,
    unique_run: bool = False,
    **options: Unpack[JobOptions],
) -> Callable[[J], J]:
    """Enqueue the job class (or what `@job` made) at each slot of the cron line.

    `name` defaults to that of the job; give one where a job has several entries. `tz` defaults to
    `TIME_ZONE`. Further keywords are options of the job for this entry. `unique_run`: a slot does not
    become a job while that of an earlier one has not ended. What is wrong with the line or the
    arguments is an error of `manage.py check`.
    """

    def decorate(target: J) -> J:
        job = getattr(target, "job_name", None)
        if job is None:
            raise InvalidPeriodicEntry(
                f"@periodic was put on {target!r}, which is no job: it takes a Job class with perform, "
                "or a function with @job below @periodic."
            )
        given: dict[str, Any] = {
            "job": job,
            "cron": cron,
            "tz": tz,
            "args": args,
            "kwargs": kwargs,
            "catch_up": catch_up,
            "run_at_first_start": run_at_first_start,
            "unique_run": unique_run,
            **options,
        }
        if limit is not None:
            given["limit"] = limit
        entries.declare(name or job, given)
        return target

    return decorate
