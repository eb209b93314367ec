"""`CogworkerBackend`: what Django calls when a task is enqueued or asked for.

Django makes one instance a thread, perhaps before the apps are ready, so it holds nothing that costs: the connection to
Redis is the one of all jobs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage
from django.utils import timezone

from django_cogworker.client import enqueue
from django_cogworker.client.transport import current_transport, real_transport
from django_cogworker.exceptions import (
    ArgumentError,
    ConfigurationError,
    PushError,
    TestModeError,
    UnknownJob,
)
from django_cogworker.features import registry as features
from django_cogworker.features.status import modes
from django_cogworker.features.tasks import seam
from django_cogworker.features.tasks.reading import TaskRecord, in_test_mode, read
from django_cogworker.jobs import registry
from django_cogworker.jobs.options import Options
from django_cogworker.jobs.when import due_at
from django_cogworker.parsers import check_queue_name
from django_cogworker.tasks import results, telling
from django_cogworker.tasks.checks import check_backend
from django_cogworker.tasks.compat import (
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    Result,
    Task,
    TaskResultDoesNotExist,
    task_enqueued,
)
from django_cogworker.tasks.definitions import as_json, define
from django_cogworker.tasks.loading import workers_find
from django_cogworker.tasks.options import BackendOptions, check_own
from django_cogworker.tasks.task_class import CogworkerTask, said


class CogworkerBackend(BaseTaskBackend):
    """Tasks as jobs. `OPTIONS` holds options of jobs, see `options`."""

    task_class = CogworkerTask

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.task_options = BackendOptions(alias, self.options)

    def validate_task(self, task: AnyTask) -> None:
        """Raise `InvalidTask` for what cannot be enqueued. Makes the task known to this process besides."""
        super().validate_task(task)
        try:
            check_queue_name(task.queue_name)
        except ValueError as error:
            raise InvalidTask(f"queue_name={task.queue_name!r}; allowed is {error}.") from None
        try:
            define(task)
            # Before that, nobody knows all options. `enqueue` comes here again, and asks for `OPTIONS` too: what is
            # wrong there is an error of the check and of the call, and keeps no module from being imported.
            if features.are_loaded():
                check_own(task.module_path, said(task))
        except ConfigurationError as error:
            raise InvalidTask(str(error)) from error

    def enqueue(self, task: AnyTask, args: Any, kwargs: Any) -> Result:
        """Enqueue a task; its result so far.

        Inside a transaction it waits for the commit (`COGWORKER_ENQUEUE_ON_COMMIT`), and is found by its id from then
        on. Of a unique task that is there already the result of that one is returned. Raises `InvalidTask`, `TypeError`
        (arguments that JSON cannot hold, or that do not fit), `PayloadTooLarge`, `PushError`, `DuplicateJob`.
        """
        self.validate_task(task)
        options = self._options_of(task)
        payload = define(task).payload(
            tuple(_wire(list(args))), _wire(dict(kwargs)), options, _due(task)
        )
        payload.update(queue=task.queue_name, task=self.alias)
        if task.priority:
            payload["priority"] = int(task.priority)
        result = results.fresh(payload, task)
        errand = seam.Errand(
            payload["jid"], partial(telling.told, task_enqueued, type(self), result)
        )
        token = seam.errand.set(errand)
        try:
            jid = enqueue(payload, on_commit=options["on_commit"])
        except BaseException as error:
            if error is not errand.failure or isinstance(error, KeyboardInterrupt):
                raise
            jid = payload["jid"]  # inline: the task's own failure, which its result tells
        finally:
            seam.errand.reset(token)
        if jid is None:
            return self._instead(task, result, errand.holder)
        return self.get_result(jid) if _runs_inline() else result

    def _options_of(self, task: AnyTask) -> Options:
        """What counts for the task, if it can be enqueued from here. Raises `InvalidTask`."""
        if current_transport() is real_transport() and not workers_find(task):
            module = task.func.__module__
            raise InvalidTask(
                f"{task.module_path} would be found by no worker: its module {module} is in no installed app, and "
                "none of them imports it when Django is set up. Move the task into the tasks.py of an installed app, "
                "or import it there."
            )
        try:
            return self.task_options.of(task.module_path, said(task))
        except ConfigurationError as error:
            raise InvalidTask(str(error)) from error

    def _instead(self, task: AnyTask, result: Result, holder: str) -> Result:
        """The result of the job that is there already."""
        if not holder:
            raise PushError(
                f"{task.module_path} was not enqueued: a client middleware kept it back.",
                refused=[result.id],
            )
        try:
            return self.get_result(holder)
        except TaskResultDoesNotExist:  # no task, or one that just ended and was forgotten
            results.put(result, id=holder)
            return result

    def get_result(self, result_id: str) -> Result:
        """The result of that id. Raises `TaskResultDoesNotExist` and redis-py's errors."""
        given: Any = result_id
        record = read(given) if isinstance(given, str) and 0 < len(given) < 64 else None
        if record is None or record.told.get("backend") != self.alias:
            raise TaskResultDoesNotExist(result_id)
        return self._result(record)

    async def aget_result(self, result_id: str) -> Result:
        """`get_result` in another thread. It has nothing to do with a transaction, so it may be any."""
        return await sync_to_async(self.get_result, thread_sensitive=False)(result_id)

    def _result(self, record: TaskRecord) -> Result:
        jid, path = record.status.jid, str(record.told.get("class", ""))
        try:
            target = registry.find_to_run({"class": path, "task": self.alias, "jid": jid}).target
        except UnknownJob as error:
            raise TaskResultDoesNotExist(jid) from error
        if not isinstance(target, Task):
            raise TaskResultDoesNotExist(jid)
        return results.of_record(record, target)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Errors and warnings about this entry of `TASKS`."""
        return check_backend(self)

    # In test modes.

    @property
    def results(self) -> list[Result]:
        """The results of all tasks of this backend in the test mode, oldest first. Raises `TestModeError` outside."""
        self._needs_test_mode("results")
        return [
            self._result(each) for each in in_test_mode() if each.told.get("backend") == self.alias
        ]

    def clear(self) -> None:
        """Forget all tasks of this backend in the test mode. Raises `TestModeError` outside."""
        board = self._needs_test_mode("clear")
        discard = getattr(current_transport(), "discard", None)
        for each in in_test_mode():
            if each.told.get("backend") == self.alias:
                if discard is not None:
                    discard(each.status.jid)
                board.forget(each.status.jid)

    def _needs_test_mode(self, asked_for: str) -> modes.Board:
        board = modes.board()
        if board is None:
            raise TestModeError(
                f"{asked_for} of a task backend works in test modes only: use testing.fake() or "
                "testing.inline(), or COGWORKER_TESTING."
            )
        return board


def _runs_inline() -> bool:
    transport = current_transport()
    return transport is not real_transport() and not transport.waits_for_commit


def _wire(value: Any) -> Any:
    try:
        return as_json(value)
    except RecursionError:
        raise ArgumentError("An argument is nested too deeply, or holds itself.") from None
    except ValueError as error:
        raise ArgumentError(f"An argument cannot travel to a worker: {error}.") from error


def _due(task: AnyTask) -> float | None:
    when = task.run_after
    if when is None:
        return None
    return due_at(timezone.make_aware(when) if timezone.is_naive(when) else when)
