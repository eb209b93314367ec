"""Floor 7: the backend for `django.tasks`, Django's own API for background work.

    TASKS = {"default": {"BACKEND": "django_cogworker.tasks.CogworkerBackend"}}

Tasks are ordinary jobs: same queues, retries, recovery, pages. `backend` is what Django calls, `definitions` makes a
job class of a task, `results` makes a `TaskResult` of what Redis knows, `telling` sends Django's signals, `loading`
finds a task that no `tasks.py` has brought along.

A module of this name is imported in every process (autodiscovery looks for modules named `tasks`, Celery's too), so
this one needs neither `django.tasks` nor the backport of it: its names are loaded when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_cogworker.features.tasks import seam

if TYPE_CHECKING:
    from django_cogworker.tasks.backend import CogworkerBackend as CogworkerBackend
    from django_cogworker.tasks.decorator import task as task
    from django_cogworker.tasks.task_class import CogworkerTask as CogworkerTask

_PLACES = {
    "CogworkerBackend": "django_cogworker.tasks.backend",
    "CogworkerTask": "django_cogworker.tasks.task_class",
    "task": "django_cogworker.tasks.decorator",
}

__all__ = ["CogworkerBackend", "CogworkerTask", "task"]


class _Teller:
    """Loads the real one with the first task."""

    def begins(self, payload: dict[str, Any], worker: str) -> None:
        from django_cogworker.tasks import telling

        telling.begins(payload, worker)

    def over(self, run: Any) -> None:
        from django_cogworker.tasks import telling

        telling.over(run)


def _load(payload: dict[str, Any]) -> Any:
    from django_cogworker.tasks.loading import load

    return load(payload)


seam.take_place(_Teller(), _load)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value
