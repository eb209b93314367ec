"""django-cogworker: background jobs for Django on Redis.

The public names are loaded when they are first asked for, so importing the package (an app config,
the embedded server's watchdog) costs nothing and makes no import circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_cogworker.features.periodic.decorator import periodic as periodic
    from django_cogworker.jobs.answers import DISCARD as DISCARD
    from django_cogworker.jobs.answers import KILL as KILL
    from django_cogworker.jobs.base import Job as Job
    from django_cogworker.jobs.context import JobContext as JobContext
    from django_cogworker.jobs.context import current_job as current_job
    from django_cogworker.jobs.function import job as job

__version__ = "0.1.0"

_PLACES = {
    "DISCARD": "django_cogworker.jobs.answers",
    "KILL": "django_cogworker.jobs.answers",
    "Job": "django_cogworker.jobs.base",
    "JobContext": "django_cogworker.jobs.context",
    "current_job": "django_cogworker.jobs.context",
    "job": "django_cogworker.jobs.function",
    "periodic": "django_cogworker.features.periodic.decorator",
}

__all__ = ["DISCARD", "KILL", "Job", "JobContext", "current_job", "job", "periodic"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
