"""Floor 6: looking at queues, workers and counters, and steering them.

from django_cogworker.api import ProcessSet, Queue, Stats

Queue("mail").pause()
for worker in ProcessSet():
    worker.quiet()
"""

from __future__ import annotations

from django_cogworker.api.processes import Process, ProcessSet, losses
from django_cogworker.api.queues import Queue, all_queues
from django_cogworker.api.stats import Stats

__all__ = ["Process", "ProcessSet", "Queue", "Stats", "all_queues", "losses"]
