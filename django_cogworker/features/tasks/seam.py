"""Where the floor that knows `django.tasks` takes part in the life of a task's job."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from django_cogworker.features.base import Run


class Teller(Protocol):
    """Tells what happens to tasks, by Django's signals. What its methods raise is logged."""

    def begins(self, payload: dict[str, Any], worker: str) -> None:
        """The task is about to run."""
        ...

    def over(self, run: Run) -> None:
        """A run is over; the task may have to run again."""
        ...


class Errand:
    """One call of a backend's `enqueue`, and what comes of it."""

    def __init__(self, jid: str, tell: Callable[[], None]) -> None:
        self.jid = jid
        self._tell = tell
        self._told = False
        #: Who has the claim of a unique task that was refused.
        self.holder = ""
        #: What the task raised that was run in this very call.
        self.failure: BaseException | None = None

    def taken(self) -> None:
        """The job is enqueued. Said once, whoever is the first to know."""
        if not self._told:
            self._told = True
            self._tell()


teller: Teller | None = None
#: Finds the task of a job whose class is not known, see `jobs.registry.loaders`.
load: Callable[[dict[str, Any]], Any] | None = None

#: The call that is under way here.
errand: ContextVar[Errand | None] = ContextVar("cogworker_task_errand", default=None)


def errand_of(payload: dict[str, Any]) -> Errand | None:
    """The call that enqueues this very job, where that is under way here."""
    current = errand.get()
    return current if current is not None and current.jid == payload["jid"] else None


def take_place(its_teller: Teller, its_load: Callable[[dict[str, Any]], Any]) -> None:
    global teller, load
    teller, load = its_teller, its_load
