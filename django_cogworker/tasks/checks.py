"""What `manage.py check` says of a `TASKS` entry of ours. Redis is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.checks import CheckMessage, Error, Warning

from django_cogworker import conf
from django_cogworker.exceptions import ConfigurationError, UnknownJob
from django_cogworker.jobs import registry
from django_cogworker.parsers import check_queue_name
from django_cogworker.tasks.compat import Task
from django_cogworker.tasks.loading import find_task
from django_cogworker.tasks.options import TASKS
from django_cogworker.tasks.task_class import said

if TYPE_CHECKING:
    from django_cogworker.tasks.backend import CogworkerBackend


def check_backend(backend: CogworkerBackend) -> list[CheckMessage]:
    return [*_options(backend), *_queues(backend)]


def _options(backend: CogworkerBackend) -> list[CheckMessage]:
    return [
        Error(each, id="django_cogworker.E105")
        for each in backend.task_options.problems(_known_paths(backend))
    ]


def _known_paths(backend: CogworkerBackend) -> dict[str, dict[str, Any]]:
    """The tasks that this process knows, and those that `OPTIONS` names which it would find, each with what it says
    itself. Of another backend's a name may be told, and nothing is told of what it says.
    """
    targets = [registry.find(name).target for name in registry.names()]
    known = {each.module_path: each for each in targets if isinstance(each, Task)}
    options: Any = backend.options
    given = options.get(TASKS) if isinstance(options, dict) else None
    for path in given if isinstance(given, dict) else ():
        try:
            if path not in known and (task := find_task(str(path))) is not None:
                known[path] = task
        except UnknownJob:
            pass  # it is reported as no task
    ours = backend.alias
    return {path: said(each) if each.backend == ours else {} for path, each in known.items()}


def _queues(backend: CogworkerBackend) -> list[CheckMessage]:
    name = f"TASKS[{backend.alias!r}]['QUEUES']"
    found: list[CheckMessage] = []
    sound: list[str] = []
    for queue in sorted(backend.queues, key=str):
        try:
            sound.append(check_queue_name(queue))
        except ValueError as error:
            message = f"{name} has {queue!r}; allowed is {error}."
            found.append(Error(message, id="django_cogworker.E106"))
    try:
        read = set(conf.get_config().read_queues)
    except ConfigurationError:
        return found  # `checks.check_settings` reports it
    unread = [each for each in sound if each not in read]
    if unread:
        found.append(
            Warning(
                f"{name} has queues that COGWORKER_QUEUES has not: {', '.join(unread)}. Tasks on them wait for "
                "ever, unless a worker is told to read them.",
                hint="Add them to COGWORKER_QUEUES, or start a worker with: manage.py runworker -q "
                f"{unread[0]}",
                id="django_cogworker.W005",
            )
        )
    return found
