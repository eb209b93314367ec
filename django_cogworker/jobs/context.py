"""What a running job knows of itself.

The worker (or a test mode) makes one `JobContext` for each run. `Job` instances have it as
attributes, functions ask `current_job()`. Features listen to `at` and `store`, and say whether
somebody wants the job to end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

from django_cogworker.exceptions import JobCancelled, NoJobContext
from django_cogworker.jobs.interruption import Interruptible, running

#: Called as `listener(context, fields)` when a job reports progress or stores fields.
Listener = Callable[["JobContext", dict[str, Any]], None]


#: Whether somebody wants the job with this payload to end.
Canceller = Callable[[dict[str, Any]], bool]


class Progress(dict[str, Any]):
    """What listeners get of `at`: `pct` and `message`. What they get of `store` is a plain dict."""


def _never() -> bool:
    return False


class JobContext(Interruptible):
    """One run of one job."""

    __slots__ = (
        "_cancellers",
        "_stopping",
        "attempt",
        "jid",
        "listeners",
        "payload",
        "perform",
    )

    def __init__(
        self,
        payload: dict[str, Any],
        attempt: int,
        stopping: Callable[[], bool] = _never,
        listeners: tuple[Listener, ...] = (),
        cancellers: tuple[Canceller, ...] = (),
    ) -> None:
        super().__init__()
        #: The job's id: 24 hex characters.
        self.jid: str = payload["jid"]
        #: 1 for the first run, 2 for the first retry …
        self.attempt = attempt
        #: The job as it lies in Redis, as a dict; arguments in wire form.
        self.payload = payload
        self.listeners = listeners
        #: Runs the job's own code; the innermost step of the server middleware.
        self.perform: Callable[[], Any] | None = None
        self._stopping = stopping
        self._cancellers = cancellers

    @property
    def stopping(self) -> bool:
        """Whether the worker wants to stop: a long job may end early and in good order now."""
        return self._stopping()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for this job to be cancelled."""
        if self.payload.get("cancelled"):
            return True
        return any(wants_end(self.payload) for wants_end in self._cancellers)

    def at(self, percent: float, message: str = "") -> None:
        """Report progress: 0 to 100 (what is beyond counts as the end of that side) and a short text.

        Raises `JobCancelled` where somebody asked for this job to be cancelled, and `TypeError` where
        `percent` is no finite number.
        """
        given: Any = percent
        if isinstance(given, bool) or not isinstance(given, (int, float)) or given != given:
            raise TypeError(f"at() takes a number from 0 to 100, not {percent!r}.")
        if self.cancelled:
            raise JobCancelled(f"Job {self.jid} was cancelled while it was running.")
        self._tell(Progress(pct=min(100.0, max(0.0, percent)), message=str(message)))

    def store(self, **fields: Any) -> None:
        """Keep fields with the job's status. Without a feature that listens it does nothing."""
        self._tell(fields)

    def _tell(self, fields: dict[str, Any]) -> None:
        for listener in self.listeners:
            listener(self, fields)


_current: ContextVar[JobContext | None] = ContextVar("cogworker_job", default=None)


def current_job() -> JobContext:
    """The context of the job that runs here. Raises `NoJobContext` outside a job."""
    context = _current.get()
    if context is None:
        raise NoJobContext("current_job() was called outside a running job.")
    return context


def job_here() -> JobContext | None:
    """The context of the job that runs here, if one does."""
    return _current.get()


def enter(context: JobContext | None) -> JobContext | None:
    """Make `context` the current one; returns the one before, to be entered again afterwards."""
    before = _current.get()
    _current.set(context)
    return before


def running_jobs() -> list[JobContext]:
    """The contexts of the jobs whose own code runs in this process now."""
    return cast("list[JobContext]", running())
