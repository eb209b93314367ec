"""Floor 6: looking at jobs, queues, workers and counters, and steering them.

from django_cogworker.api import ProcessSet, Queue, Stats

Queue("mail").pause()
for worker in ProcessSet():
    worker.quiet()

What belongs to a feature is loaded when it is first asked for, since the feature may not be there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django_cogworker.api.acting import Action, Verdict
from django_cogworker.api.attempts import FailedAttempt, attempts
from django_cogworker.api.bulk import BulkAction, BulkProgress
from django_cogworker.api.counters import counters
from django_cogworker.api.criteria import Criteria
from django_cogworker.api.everywhere import AllJobs, JobHeads, Sighting, Sightings
from django_cogworker.api.explaining import Explanation, explain
from django_cogworker.api.finding import FoundJob, find_job
from django_cogworker.api.processes import Process, ProcessSet, losses
from django_cogworker.api.queue_states import QueueState, queue_names, queue_states
from django_cogworker.api.queues import Queue, all_queues
from django_cogworker.api.records import JobRecord, SortedEntry
from django_cogworker.api.redis_facts import RedisFacts, redis_facts
from django_cogworker.api.sets import DeadSet, RetrySet, ScheduledSet
from django_cogworker.api.shelf import JobMatches, JobPage
from django_cogworker.api.sought import SoughtJob, seek
from django_cogworker.api.stats import Stats
from django_cogworker.api.throughput import HourCount, throughput
from django_cogworker.api.work import Held, Work, WorkSet
from django_cogworker.features.base import Reason

if TYPE_CHECKING:
    from django_cogworker.api.cancelling import acancel, cancel
    from django_cogworker.api.errors import (
        ErrorGroup,
        ErrorGroupPage,
        error_group,
        error_groups,
        forget_error_group,
    )
    from django_cogworker.api.history import (
        ClassHour,
        ClassStats,
        ClassTimes,
        DayCount,
        History,
        HistoryEntry,
        HistoryPage,
        HistoryRanking,
        HistorySlice,
        Percentiles,
        class_hours,
        class_names,
        class_stats,
        class_times,
        percentiles,
    )
    from django_cogworker.api.limits import stuck_jobs
    from django_cogworker.api.periodic import PeriodicEntry, PeriodicSet, PeriodicState
    from django_cogworker.api.stacks import JobStack, WorkerStacks, ask_stacks, worker_stacks
    from django_cogworker.api.tracking import (
        JobStatus,
        aresult,
        astatus,
        await_end,
        result,
        status,
        wait,
    )
    from django_cogworker.api.unique import UniqueLock, release_lock, unique_locks

#: What features tell: name -> module in this folder. Imported when it is asked for, since a feature may be missing.
_OF_FEATURES = {
    "ClassHour": "history",
    "ClassStats": "history",
    "ClassTimes": "history",
    "DayCount": "history",
    "ErrorGroup": "errors",
    "ErrorGroupPage": "errors",
    "History": "history",
    "HistoryEntry": "history",
    "HistoryPage": "history",
    "HistoryRanking": "history",
    "HistorySlice": "history",
    "JobStack": "stacks",
    "Percentiles": "history",
    "UniqueLock": "unique",
    "PeriodicEntry": "periodic",
    "PeriodicSet": "periodic",
    "PeriodicState": "periodic",
    "WorkerStacks": "stacks",
    "ask_stacks": "stacks",
    "class_hours": "history",
    "class_names": "history",
    "class_stats": "history",
    "class_times": "history",
    "error_group": "errors",
    "error_groups": "errors",
    "forget_error_group": "errors",
    "percentiles": "history",
    "release_lock": "unique",
    "unique_locks": "unique",
    "stuck_jobs": "limits",
    "JobStatus": "tracking",
    "acancel": "cancelling",
    "aresult": "tracking",
    "astatus": "tracking",
    "await_end": "tracking",
    "cancel": "cancelling",
    "result": "tracking",
    "status": "tracking",
    "wait": "tracking",
    "worker_stacks": "stacks",
}

__all__ = [
    "Action",
    "AllJobs",
    "BulkAction",
    "BulkProgress",
    "ClassHour",
    "ClassStats",
    "ClassTimes",
    "Criteria",
    "DayCount",
    "DeadSet",
    "ErrorGroup",
    "ErrorGroupPage",
    "Explanation",
    "FailedAttempt",
    "FoundJob",
    "Held",
    "History",
    "HistoryEntry",
    "HistoryPage",
    "HistoryRanking",
    "HistorySlice",
    "HourCount",
    "JobHeads",
    "JobMatches",
    "JobPage",
    "JobRecord",
    "JobStack",
    "JobStatus",
    "Percentiles",
    "PeriodicEntry",
    "PeriodicSet",
    "PeriodicState",
    "Process",
    "ProcessSet",
    "Queue",
    "QueueState",
    "Reason",
    "RedisFacts",
    "RetrySet",
    "ScheduledSet",
    "Sighting",
    "Sightings",
    "SortedEntry",
    "SoughtJob",
    "Stats",
    "UniqueLock",
    "Verdict",
    "Work",
    "WorkSet",
    "WorkerStacks",
    "acancel",
    "all_queues",
    "aresult",
    "ask_stacks",
    "astatus",
    "attempts",
    "await_end",
    "cancel",
    "class_hours",
    "class_names",
    "class_stats",
    "class_times",
    "counters",
    "error_group",
    "error_groups",
    "explain",
    "find_job",
    "forget_error_group",
    "losses",
    "percentiles",
    "queue_names",
    "queue_states",
    "redis_facts",
    "release_lock",
    "result",
    "seek",
    "status",
    "stuck_jobs",
    "throughput",
    "unique_locks",
    "wait",
    "worker_stacks",
]


def __getattr__(name: str) -> Any:
    module = _OF_FEATURES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        raise AttributeError(f"{name} belongs to a feature that is not there ({error})") from None
