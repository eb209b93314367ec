"""The option `timeout`: a run that takes longer is interrupted, and counts as one failed attempt.

The limit is that of the job's own code: the clock starts right before it. A middleware that swallows the
`JobTimeout` does not make a success of it.
"""

from __future__ import annotations

from collections.abc import Callable

from django_cogworker.exceptions import JobTimeout
from django_cogworker.features.base import Feature, Worker
from django_cogworker.features.durations import seconds_or_none
from django_cogworker.features.interrupting.insistence import Insistence
from django_cogworker.features.interrupting.stuck import stuck_jobs
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.options import Option


class Timeout(Feature):
    name = "timeout"
    options = (
        Option(
            "timeout",
            None,
            seconds_or_none,
            lambda value: {} if value is None else {"timeout": value},
        ),
    )
    concerns = frozenset({"timeout"})

    def attached(self, worker: Worker) -> None:
        stuck_jobs.worker = worker

    def watch(self, context: JobContext) -> Callable[[], None] | None:
        seconds = context.payload.get("timeout")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            return None
        message = f"The job ran longer than its limit of {seconds:g} s."
        return Insistence(context, JobTimeout, message, seconds).end
