"""A worker that gets a task which no `jobs.py` or `tasks.py` has brought along imports its module.

Only from inside an installed app, only for a job that was enqueued as a task, and only if a task is found under the
very name: a payload can start nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps

from django_cogworker.exceptions import ConfigurationError, UnknownJob
from django_cogworker.jobs.definition import Definition
from django_cogworker.tasks.compat import AnyTask, Task
from django_cogworker.tasks.definitions import define, set_up_with


def find_task(path: str) -> AnyTask | None:
    """The task of that path inside an installed app. Raises `UnknownJob` where its module cannot be imported."""
    module, _, name = path.rpartition(".")
    if not module or apps.get_containing_app_config(module) is None:
        return None
    try:
        found = getattr(import_module(module), name, None)
    except Exception as error:  # whatever the module does
        raise UnknownJob(
            f"The module of the task {path!r} cannot be imported: {type(error).__qualname__}: {error}."
        ) from error
    return found if isinstance(found, Task) and found.module_path == path else None


def workers_find(task: AnyTask) -> bool:
    """Whether a worker of this project would know the task: by its app, or because its module is imported when Django
    is set up. A script has no other process.
    """
    module = task.func.__module__
    if module == "__main__":
        return False
    return task.module_path in set_up_with or apps.get_containing_app_config(module) is not None


def load(payload: dict[str, Any]) -> Definition | None:
    """The definition of the task that a payload names, if it is one."""
    task = find_task(payload["class"])
    if task is None:
        return None
    try:
        return define(task)
    except ConfigurationError as error:
        raise UnknownJob(f"{payload['class']} cannot run as a job: {error}") from error
