"""`task`: Django's decorator with the options of jobs, for all versions of Django and for type checkers.

    @task(retry=5, timeout=30)
    def send(order_id: int) -> None: ...

Where the backend of the alias is another one (Django's own in a project's tests) the options have no meaning and are
left away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from django_cogworker.tasks.compat import Task, TaskContext, task_backends
from django_cogworker.tasks.task_class import ELSEWHERE, CogworkerTask

P = ParamSpec("P")
R = TypeVar("R")


class TaskOptions(TypedDict, total=False):
    """What a task may say, for type checkers. See `docs/how-to/django-tasks.md`."""

    priority: int
    queue_name: str
    backend: str
    retry: bool | int
    on_commit: bool | str
    at_most_once: bool
    tags: Sequence[str]
    result_ttl: float | timedelta
    extra: Mapping[str, Any]
    unique: Literal["until_executing", "until_executed", "while_executing"] | bool | None
    unique_on: Sequence[str] | Callable[..., Any] | None
    unique_ttl: float | timedelta | None
    on_conflict: Literal["skip", "raise", "replace"]
    timeout: float | timedelta | None
    expires_in: float | timedelta | None
    sensitive: Sequence[str]
    discard_on: tuple[type[BaseException], ...]
    retry_in: Callable[..., Any] | None
    retries_exhausted: Callable[..., Any] | None


if TYPE_CHECKING:
    _Context = TaskContext[Any, Any]


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *, takes_context: Literal[False] = False, **options: Unpack[TaskOptions]
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
@overload
def task(
    *, takes_context: Literal[True], **options: Unpack[TaskOptions]
) -> Callable[[Callable[Concatenate[_Context, P], R]], Task[P, R]]: ...
def task(
    function: Any = None, /, *, takes_context: bool = False, **options: Unpack[TaskOptions]
) -> Any:
    """Make a function a task. `@task` and `@task(…)` both work; raises `InvalidTask`, or `TypeError` for an option
    that there is not.
    """
    unknown = sorted(options.keys() - TaskOptions.__annotations__.keys())
    if unknown and unknown[0] in ELSEWHERE:
        raise TypeError(f"@task has no option {unknown[0]!r}: say {ELSEWHERE[unknown[0]]}.")
    if unknown:
        raise TypeError(f"@task has no option {unknown[0]!r}.")
    given: dict[str, Any] = dict(options)
    general = {
        "priority": given.pop("priority", 0),
        "queue_name": given.pop("queue_name", "default"),
        "backend": given.pop("backend", "default"),
        "takes_context": takes_context,
        "run_after": None,
    }

    def decorate(function: Any) -> Any:
        kind: Any = task_backends[general["backend"]].task_class
        own = given if issubclass(kind, CogworkerTask) else {}
        return kind(func=function, **general, **own)

    return decorate if function is None else decorate(function)
