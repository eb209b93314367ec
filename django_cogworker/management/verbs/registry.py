"""All verbs, in the order in which `manage.py cogworker --help` names them."""

from __future__ import annotations

from django_cogworker.management.verbs.base import Verb
from django_cogworker.management.verbs.errors import ForgetErrors, ShowErrors
from django_cogworker.management.verbs.health import HealthCheck
from django_cogworker.management.verbs.history import ShowClasses, ShowHistory
from django_cogworker.management.verbs.jobs import Cancel, Explain, Find
from django_cogworker.management.verbs.locks import Release, ShowLocks
from django_cogworker.management.verbs.periodic import Disable, Enable, RunNow, ShowPeriodic
from django_cogworker.management.verbs.queues import Clear, Pause, Resume, ShowQueues
from django_cogworker.management.verbs.stats import ShowStats
from django_cogworker.management.verbs.waiting import Delete, Kill, Move, Reschedule, Retry
from django_cogworker.management.verbs.workers import (
    Quiet,
    ShowLosses,
    ShowStacks,
    ShowWorkers,
    Stop,
    Unquiet,
)

VERBS: tuple[type[Verb], ...] = (
    ShowStats,
    ShowQueues,
    ShowLosses,
    ShowLocks,
    ShowWorkers,
    ShowStacks,
    ShowHistory,
    ShowClasses,
    ShowErrors,
    ForgetErrors,
    HealthCheck,
    Pause,
    Resume,
    Clear,
    Release,
    Find,
    Explain,
    Cancel,
    Retry,
    Delete,
    Kill,
    Move,
    Reschedule,
    Quiet,
    Unquiet,
    Stop,
    ShowPeriodic,
    Disable,
    Enable,
    RunNow,
)
BY_NAME = {each.name: each for each in VERBS}
