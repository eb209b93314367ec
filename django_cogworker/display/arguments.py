"""A job's arguments for people, sensitive ones masked: the one place where pages get them from."""

from __future__ import annotations

from typing import Any

from django_cogworker.api.records import JobRecord
from django_cogworker.jobs.masking import visible_arguments, visible_payload
from django_cogworker.payload.display import arguments_text, shown


def arguments_shown(job: Any) -> str:
    """Of a job that waits or runs, or of a run in the history, on one line."""
    if isinstance(job, JobRecord):
        return _of_record(job)
    # What is in the history was masked before it was written.
    if job.args_cut is not None:
        return str(job.args_cut)
    return arguments_text(job.args or (), job.kwargs)


def _of_record(job: JobRecord) -> str:
    if not job.unparseable:
        return arguments_text(*visible_arguments(job.item))
    whole = {"raw_payload": job.arguments} if job.problem else job.item
    return shown(str(visible_payload(whole).get("raw_payload", "")))
