"""Which group a failure is of, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from django_cogworker.exceptions import JobFailedError
from django_cogworker.features.base import Run
from django_cogworker.features.errors.place import MAX_WHERE, Place, place_of
from django_cogworker.jobs import registry
from django_cogworker.jobs.masking import masked_text
from django_cogworker.payload.failure import clean, error_name, error_text

#: Any text may stand in a payload; only the classes of the project are bounded in number.
UNKNOWN = "(unknown)"
MAX_NAME = 200
MAX_MESSAGE = 500


class Failure(NamedTuple):
    """One failure, by what its group is told."""

    group: str
    job_class: str
    error_class: str
    place: Place
    message: str


def failure_of(payload: dict[str, Any], error: BaseException) -> Failure:
    """Of an error that was raised here."""
    job_class = _class_of(payload)
    name, place = clean(error_name(error), MAX_NAME), place_of(error, job_class)
    group = group_id(job_class, name, place.where)
    message = masked_text(error_text(error), payload)[:MAX_MESSAGE]
    return Failure(group, job_class, name, place, message)


def failure_of_run(run: Run) -> Failure:
    """Of a run that failed: here, or in a worker that died before it could say so."""
    if run.error is None or (not run.began_at and isinstance(run.error, JobFailedError)):
        return failure_of_record(run.payload)
    return failure_of(run.payload, run.error)


def failure_of_record(payload: dict[str, Any]) -> Failure:
    """By what stands in the record of a job that failed."""
    job_class = _class_of(payload)
    name = clean(str(payload.get("error_class", "")), MAX_NAME)
    message = clean(masked_text(str(payload.get("error_message", "")), payload), MAX_MESSAGE)
    where = clean(str(payload.get("error_place", "")), MAX_WHERE)
    group = payload.get("error_group")
    if not isinstance(group, str) or len(group) > 64:
        group = group_id(job_class, name, where)
    return Failure(group, job_class, name, Place(where), message)


def group_id(job_class: str, error_class: str, where: str) -> str:
    """12 hex characters."""
    text = json.dumps([job_class, error_class, where])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def _class_of(payload: dict[str, Any]) -> str:
    definition = registry.lookup(payload["class"])
    return UNKNOWN if definition is None else definition.name
