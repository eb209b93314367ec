"""A job's arguments as they may be shown to people: what is sensitive is masked here, for all pages.

On one line for tables, or each on a line of its own, with what is long broken at its brackets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_cogworker.api.records import JobRecord
from django_cogworker.jobs.masking import visible_arguments, visible_payload
from django_cogworker.payload.display import arguments_lines, arguments_text

#: More than this is cut on a page of its own (characters).
MAX_TEXT = 50_000


def arguments_shown(job: Any) -> str:
    """Of a job that waits or runs, or of a run in the history, on one line."""
    if not isinstance(job, JobRecord):
        # What is in the history was masked when it was written.
        cut_text: str | None = job.args_cut
        return arguments_text(job.args or (), job.kwargs) if cut_text is None else cut_text
    return job.visible_arguments


def arguments_in_lines(record: JobRecord) -> str:
    """On several lines; empty where it has none."""
    if record.unparseable:
        return cut(record.visible_arguments)
    args, kwargs = visible_arguments(record.item)
    return cut(arguments_lines(args, kwargs))


def value_lines(value: Any, job_class: str = "") -> str:
    """A value of a job's, in wire form: keys of dicts in it are masked as in arguments of that class."""
    masked = visible_payload({"class": job_class, "value": value})["value"]
    return cut(arguments_lines([masked]))


def fields_of(fields: Mapping[str, Any], job_class: str = "") -> dict[str, str]:
    """Named values, such as what a job stored, as texts."""
    masked = visible_payload({"class": job_class, "fields": dict(fields)})["fields"]
    return {name: cut(arguments_lines([value])) for name, value in masked.items()}


def cut(text: str, limit: int = MAX_TEXT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
