"""The option `timeout`: a run that takes longer is interrupted, and counts as one failed attempt.

A job without it passes one comparison. A job with it gets a `Limit`, which stands right around the
job's own code; the one `Clock` of the process interrupts it. The middleware stands outside all
others, so a middleware that swallows the `JobTimeout` does not make a success of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_cogworker.conf import get_config
from django_cogworker.features.base import Feature, Worker
from django_cogworker.features.durations import seconds_or_none
from django_cogworker.features.timeout.limit import Limit
from django_cogworker.features.timeout.stuck import StuckJobs
from django_cogworker.jobs.context import current_job
from django_cogworker.jobs.options import Option

Call = Callable[[Any, dict[str, Any]], Any]

_stuck = StuckJobs()


def limit_time(next_call: Call) -> Call:
    """The server middleware."""

    def limited(job: Any, payload: dict[str, Any]) -> Any:
        seconds = payload.get("timeout")
        if seconds is None or isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            return next_call(job, payload)
        context = current_job()
        limit = Limit(payload, seconds, get_config().timeout_grace, _stuck.found)
        context.around, context.awaiting = limit.call, limit.awaiting
        result = next_call(job, payload)
        if limit.error is not None:  # a middleware swallowed it
            raise limit.error
        return result

    return limited


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
    server_middleware = (limit_time,)

    def attached(self, worker: Worker) -> None:
        _stuck.worker = worker
