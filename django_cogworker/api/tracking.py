"""The status of tracked jobs, and waiting for their results: the part of the feature `status`."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from django_cogworker.features.status.reading import JobStatus
from django_cogworker.features.status.reading import read as status
from django_cogworker.features.status.waiting import aresult, await_end, result, wait

astatus = sync_to_async(status, thread_sensitive=False)

__all__ = ["JobStatus", "aresult", "astatus", "await_end", "result", "status", "wait"]
