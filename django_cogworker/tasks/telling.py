"""Tells of starts and ends of tasks in this process: Django's signals `task_started` and `task_finished`.

The result of a running task is kept here until its run is over: the task's context shows it, and the end completes it.
The first run of a task needs no look at Redis for it; later ones need one, for what came before. `task_finished` comes
once a task, with the last of its attempts. A receiver that raises is logged: it can neither fail a task nor undo one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import redis
from django.dispatch import Signal

from django_cogworker.exceptions import UnknownJob
from django_cogworker.features.base import Run
from django_cogworker.features.status.record import ALIVE, is_first_run, state_after
from django_cogworker.features.tasks.reading import read
from django_cogworker.jobs import registry
from django_cogworker.tasks import results
from django_cogworker.tasks.compat import (
    AnyTask,
    BaseTaskBackend,
    Result,
    Task,
    TaskResultStatus,
    task_backends,
    task_finished,
    task_started,
)
from django_cogworker.tasks.task_class import with_fields

logger = logging.getLogger("django_cogworker")

#: The results of the tasks that run in this process, by their jids.
_running: dict[str, Result] = {}


def begins(payload: dict[str, Any], worker: str) -> None:
    """A task is about to run; its status says so already."""
    result = _so_far(payload)
    now = results.moment(time.time())
    if result.status != TaskResultStatus.RUNNING:  # else the record knows of this start
        result.worker_ids.append(worker)
    results.put(
        result,
        status=TaskResultStatus.RUNNING,
        started_at=result.started_at or now,
        last_attempted_at=now,
        finished_at=None,
    )
    _running[payload["jid"]] = result
    send(task_started, payload["task"], result)


def running(payload: dict[str, Any]) -> Result:
    """The result of a task that runs here, as its context shows it."""
    return _running.get(payload["jid"]) or _so_far(payload)


def over(run: Run) -> None:
    """A run is over. Where that is the end of the task it is told."""
    payload = run.payload
    result = _running.pop(payload["jid"], None)
    if state_after(run.outcome, run.delay) in ALIVE:
        return
    if result is None:
        result = _so_far(payload)
    results.put(result, finished_at=results.moment(time.time()))
    if run.outcome == "finished":
        results.put(result, status=TaskResultStatus.SUCCESSFUL, _return_value=run.result)
        send(task_finished, payload["task"], result)
        return
    results.put(result, status=TaskResultStatus.FAILED)
    error = run.error or results.end_without_run(run.outcome)
    said = results.error_of(error)
    if said not in result.errors[-1:]:  # of a job that others have filed it is written already
        result.errors.append(said)
    _while_handling(error, lambda: send(task_finished, payload["task"], result))


def send(signal: Signal, alias: str, result: Result) -> None:
    """Send the signal as the backend of that alias, and log what its receivers raise."""
    try:
        sender = type(task_backends[alias])
    except Exception as error:
        logger.error(
            "Nothing can be told of task %s: %s", result.id, error, extra={"jid": result.id}
        )
        return
    told(signal, sender, result)


def told(signal: Signal, sender: type[BaseTaskBackend], result: Result) -> None:
    for receiver, answer in signal.send_robust(sender=sender, task_result=result):
        if isinstance(answer, Exception):
            logger.error(
                "Receiver %r of a signal of django.tasks failed: %r.",
                receiver,
                answer,
                exc_info=answer,
                extra={"jid": result.id},
            )


def _while_handling(error: BaseException, do: Callable[[], None]) -> None:
    """As in an `except` block, where receivers look for what is handled. The error's traceback stays as it is."""
    traceback = error.__traceback__
    try:
        raise error
    except BaseException:
        error.__traceback__ = traceback
        do()


def _so_far(payload: dict[str, Any]) -> Result:
    """The result as it was before this moment."""
    task = _task(payload)
    if not is_first_run(payload):
        try:
            record = read(payload["jid"])
        except (redis.RedisError, OSError) as error:
            logger.warning(
                "What task %s did before cannot be read: %s.",
                payload["jid"],
                error,
                extra={"jid": payload["jid"]},
            )
            record = None
        if record is not None:
            return results.of_record(record, task)
    told = with_fields(
        task,
        priority=payload.get("priority", 0),
        queue_name=payload.get("queue", ""),
        backend=payload["task"],
        run_after=results.moment(payload.get("at")),
    )
    return results.fresh(payload, told)


def _task(payload: dict[str, Any]) -> AnyTask:
    target = registry.find_to_run(payload).target
    if not isinstance(target, Task):
        raise UnknownJob(f"{payload['class']} was enqueued as a task, and is none.")
    return target
