"""A task as a job class: its `Definition`, under the path of its function.

It is registered when a task is made whose backend is ours, so the pages, filters and workers of a project know its
tasks by their names, like all other jobs.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from django.apps import apps

from django_cogworker.features.status.results import packed
from django_cogworker.jobs import registry
from django_cogworker.jobs.answers import KILL, RetryAnswer
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.definition import Definition
from django_cogworker.jobs.options import no_options
from django_cogworker.tasks import telling
from django_cogworker.tasks.compat import AnyTask, Task, TaskContext, normalize_json
from django_cogworker.worker.calling import call_accepting

#: The tasks that were made while Django was set up, as in every process of the project.
set_up_with: set[str] = set()

#: An error with this attribute comes again with each attempt.
_FINAL = "cogworker_final"


def as_json(value: Any) -> Any:
    """The value as it comes back from JSON. Raises `TypeError` or `ValueError` for what JSON cannot hold."""
    return json.loads(json.dumps(normalize_json(value), allow_nan=False))


def define(task: AnyTask) -> Definition:
    """The definition of this task, made and registered where there is none yet. Raises `ConfigurationError`."""
    found = registry.lookup(task.module_path)
    if found is not None and isinstance(found.target, Task) and found.target.func is task.func:
        return found
    definition = Definition(
        name=task.module_path,
        target=task,
        options=no_options(),
        function=task.func,
        make=_Making(task),
        bound=task.takes_context,
        hook=_Hooks(task),
    )
    registry.register(definition)
    if not apps.ready:
        set_up_with.add(task.module_path)
    return definition


class _Making:
    """Makes, for each run, what runs it."""

    def __init__(self, task: AnyTask) -> None:
        self._task = task

    def __call__(self, context: JobContext) -> tuple[Any, Callable[..., Any]]:
        return self._task, TaskCall(self._task, context)


class TaskCall:
    """One call of a task's function."""

    def __init__(self, task: AnyTask, context: JobContext) -> None:
        self._task = task
        self._context = context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._task.takes_context:
            result = telling.running(self._context.payload)
            args = (TaskContext(task_result=result), *args)
        value = self._task.func(*args, **kwargs)
        return self._awaited(value) if inspect.isawaitable(value) else _result(value)

    async def _awaited(self, value: Any) -> Any:
        return _result(await value)


def _result(value: Any) -> Any:
    """The return value as others will read it. One that cannot be kept would not be kept the next time either, and the
    task has run: it is not run again.
    """
    try:
        result = as_json(value)
        packed(result, "the return value")
    except (TypeError, ValueError, RecursionError) as error:
        setattr(error, _FINAL, True)
        raise
    return result


class _Hooks:
    """The hooks of a task, by their names."""

    def __init__(self, task: AnyTask) -> None:
        self._task = task

    def __call__(self, name: str) -> Any:
        if name == "retry_in":
            return self._retry_in
        default = () if name == "discard_on" else None
        return getattr(self._task, name, default)

    def _retry_in(self, count: int, error: BaseException, payload: dict[str, Any]) -> Any:
        if getattr(error, _FINAL, False):
            answer: RetryAnswer = KILL
            return answer
        hook = getattr(self._task, "retry_in", None)
        return None if hook is None else call_accepting(hook, count, error, payload)
