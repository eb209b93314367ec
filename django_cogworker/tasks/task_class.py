"""`CogworkerTask`: a task with the options of a job, as fields.

`@task(retry=5, timeout=30)` of Django 6.1 (and of the backport) hands further keywords to the backend's `task_class`;
Django 6.0 does not, there `django_cogworker.tasks.task` does.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from django.utils.module_loading import import_string

from django_cogworker.jobs.options import JobOptions
from django_cogworker.tasks.compat import AnyTask


class Unsaid(enum.Enum):
    """In place of an option about which the task says nothing."""

    UNSAID = "unsaid"

    def __repr__(self) -> str:
        return "UNSAID"


UNSAID = Unsaid.UNSAID

#: What a job has and a task says in other words, or need not say.
ELSEWHERE = {
    "queue": "queue_name of the task",
    "priority": "priority of the task",
    "track": "nothing: tasks are always tracked",
    "missing_row": "nothing: the arguments of a task are JSON, so none is a row that could be gone",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CogworkerTask(AnyTask):
    """A task whose decorator may name options of jobs. What it leaves unsaid `OPTIONS` of the backend may say."""

    retry: bool | int | Unsaid = UNSAID
    on_commit: bool | str | Unsaid = UNSAID
    at_most_once: bool | Unsaid = UNSAID
    tags: Sequence[str] | Unsaid = UNSAID
    result_ttl: float | timedelta | Unsaid | None = UNSAID
    extra: Mapping[str, Any] | Unsaid = UNSAID
    unique: (
        Literal["until_executing", "until_executed", "while_executing"] | bool | Unsaid | None
    ) = UNSAID
    unique_on: Sequence[str] | Callable[..., Any] | Unsaid | None = UNSAID
    unique_ttl: float | timedelta | Unsaid | None = UNSAID
    on_conflict: Literal["skip", "raise", "replace"] | Unsaid = UNSAID
    timeout: float | timedelta | Unsaid | None = UNSAID
    expires_in: float | timedelta | Unsaid | None = UNSAID
    sensitive: Sequence[str] | Unsaid = UNSAID
    #: Exceptions that end the task at once, failed, without retry and without the dead set.
    discard_on: tuple[type[BaseException], ...] = ()
    #: `retry_in(count, error, payload)` and `retries_exhausted(payload, error)`: the hooks of jobs.
    retry_in: Callable[..., Any] | None = None
    retries_exhausted: Callable[..., Any] | None = None

    @property
    def job_name(self) -> str:
        """The name in payloads, for all that takes a job class: assertions, the history …"""
        return self.module_path

    def __reduce__(self) -> Any:
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return _rebuilt, (type(self), {**fields, "func": self.module_path})


#: The options that a task may say itself.
NAMES = tuple(
    each.name
    for each in dataclasses.fields(CogworkerTask)
    if each.name in JobOptions.__annotations__ and each.name not in ELSEWHERE
)
#: The hooks.
HOOKS = ("discard_on", "retry_in", "retries_exhausted")


def said(task: AnyTask) -> dict[str, Any]:
    """The options that a task says itself; one that another backend has made says none."""
    if not isinstance(task, CogworkerTask):
        return {}
    found = {name: getattr(task, name) for name in NAMES}
    return {name: value for name, value in found.items() if value is not UNSAID}


def with_fields(task: AnyTask, **changes: Any) -> AnyTask:
    """A copy with other fields, which is not validated: it is about what was enqueued once, under whatever settings."""
    copy: AnyTask = object.__new__(type(task))
    for each in dataclasses.fields(task):
        value = changes[each.name] if each.name in changes else getattr(task, each.name)
        object.__setattr__(copy, each.name, value)
    return copy


def _rebuilt(kind: type[AnyTask], fields: dict[str, Any]) -> AnyTask:
    """A task travels by the name of its function, under which a task is found."""
    path = fields["func"]
    try:
        function = import_string(path).func
    except (ImportError, AttributeError) as error:
        raise ValueError(f"Expected {path!r} to point to a Task instance.") from error
    return kind(**{**fields, "func": function})
