"""From what Redis knows of a task to its `TaskResult`.

A job that waits, for its turn, its time or the next attempt, is READY; one that runs is RUNNING; one that ended well is
SUCCESSFUL; whatever else became of it, it is FAILED, with an entry in `errors` that says why.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django_cogworker.exceptions import DuplicateJob, JobCancelled, JobFailedError, NoResultError
from django_cogworker.features.status.reading import JobStatus
from django_cogworker.features.tasks.reading import Failure, TaskRecord
from django_cogworker.payload.arguments import unpack_args, unpack_kwargs
from django_cogworker.payload.failure import error_name, error_text, error_traceback
from django_cogworker.tasks.compat import AnyTask, Result, TaskError, TaskResult, TaskResultStatus
from django_cogworker.tasks.task_class import with_fields

_STATUS = {
    "queued": TaskResultStatus.READY,
    "scheduled": TaskResultStatus.READY,
    "retrying": TaskResultStatus.READY,
    "working": TaskResultStatus.RUNNING,
    "complete": TaskResultStatus.SUCCESSFUL,
}

#: Ends that leave no record of a failed attempt, and the error that stands for each.
_ENDS: dict[str, BaseException] = {
    "cancelled": JobCancelled("The task was cancelled."),
    "expired": JobFailedError("The task expired: its time was over before it could start."),
    "replaced": DuplicateJob("A newer call of this unique task took its place.", holder=""),
}


def moment(seconds: Any) -> dt.datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def fresh(payload: dict[str, Any], task: AnyTask) -> Result:
    """That of a job as it is pushed. `task` is what was enqueued."""
    return TaskResult(
        task=task,
        id=payload["jid"],
        status=TaskResultStatus.READY,
        enqueued_at=moment(payload.get("created_at")),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=unpack_args(payload.get("args") or []),
        kwargs=unpack_kwargs(payload.get("kwargs") or {}),
        backend=payload["task"],
        errors=[],
        worker_ids=[],
    )


def of_record(record: TaskRecord, task: AnyTask) -> Result:
    """That of a job as Redis knows it. `task` is the one that was made in its module."""
    told, status = record.told, record.status
    result: Result = TaskResult(
        task=with_fields(
            task,
            priority=told.get("priority", 0),
            queue_name=told.get("queue", ""),
            backend=told["backend"],
            run_after=moment(told.get("run_after")),
        ),
        id=status.jid,
        status=_STATUS.get(status.state, TaskResultStatus.FAILED),
        enqueued_at=moment(told.get("enqueued_at")),
        started_at=moment(status.starts[0].at) if status.starts else None,
        finished_at=moment(status.updated) if status.has_ended else None,
        last_attempted_at=moment(status.starts[-1].at) if status.starts else None,
        args=told["args"],
        kwargs=told["kwargs"],
        backend=told["backend"],
        errors=[_error(each) for each in record.failures],
        worker_ids=[each.worker for each in status.starts],
    )
    if result.status == TaskResultStatus.FAILED:
        _explain(result, status)
    elif result.status == TaskResultStatus.SUCCESSFUL:
        put(result, _return_value=_value(status))
    return result


def put(result: Result, **fields: Any) -> None:
    """Set fields: results are frozen for those who read them."""
    for name, value in fields.items():
        object.__setattr__(result, name, value)


def error_of(error: BaseException) -> TaskError:
    return _error(Failure(error_name(error), error_text(error), error_traceback(error)))


def end_without_run(outcome: str) -> BaseException:
    """The error that stands for an end which nothing was raised for."""
    return _ENDS.get(outcome, JobFailedError(f"The task did not end well: it is {outcome}."))


def _explain(result: Result, status: JobStatus) -> None:
    """No failed task without an error that says why."""
    if status.state in _ENDS:
        result.errors.append(error_of(_ENDS[status.state]))
    elif not result.errors and status.error_class:
        said = Failure(status.error_class, status.error_message, "")
        result.errors.append(_error(said))
    elif not result.errors:
        result.errors.append(error_of(end_without_run(status.state)))


def _error(failure: Failure) -> TaskError:
    name = failure.error_class
    return TaskError(
        exception_class_path=name if "." in name else f"builtins.{name}",
        traceback=failure.traceback or f"{name}: {failure.error_message}\n",
    )


def _value(status: JobStatus) -> Any:
    try:
        return status.result
    except NoResultError:  # by other hands
        return None
