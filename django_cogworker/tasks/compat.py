"""`django.tasks` of Django 6, or its backport `django_tasks` on older ones, under the names of the former."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from django.tasks import TaskContext as TaskContext
    from django.tasks import TaskResult as TaskResult
    from django.tasks import TaskResultStatus as TaskResultStatus
    from django.tasks import task_backends as task_backends
    from django.tasks.backends.base import BaseTaskBackend as BaseTaskBackend
    from django.tasks.base import Task as Task
    from django.tasks.base import TaskError as TaskError
    from django.tasks.exceptions import InvalidTask as InvalidTask
    from django.tasks.exceptions import TaskResultDoesNotExist as TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued as task_enqueued
    from django.tasks.signals import task_finished as task_finished
    from django.tasks.signals import task_started as task_started
    from django.utils.json import normalize_json as normalize_json

    AnyTask = Task[Any, Any]
    Result = TaskResult[Any, Any]
elif importlib.util.find_spec("django.tasks") is not None:
    from django.tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
elif importlib.util.find_spec("django_tasks") is not None:
    from django_tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskError
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json
else:
    raise ImproperlyConfigured(
        "The backend for django.tasks needs Django 6.0 or newer; on Django 5.2 install its backport: "
        "pip install 'django-cogworker[tasks]'."
    )

if not TYPE_CHECKING:  # only the stubs, and the backport, know that these are generic
    AnyTask, Result = Task, TaskResult

__all__ = [
    "AnyTask",
    "BaseTaskBackend",
    "InvalidTask",
    "Result",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
