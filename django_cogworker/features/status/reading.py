"""The status as a value."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from django_cogworker.exceptions import NoResultError
from django_cogworker.features.status import modes, record
from django_cogworker.payload.arguments import unpack
from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """A run began: when (epoch seconds), in which worker."""

    at: float
    worker: str


@dataclasses.dataclass(frozen=True, slots=True)
class JobStatus:
    """What is known of a tracked job.

    `state`: `queued`, `scheduled`, `working`, `retrying`, or an end: `complete`, `dead` (in the dead
    set), `failed` (given up, kept nowhere), `cancelled`, `expired`. `updated` and `due` (of a job that
    waits for its time) in epoch seconds. `percent` is `None` until the job reports progress.
    """

    jid: str
    state: str
    job_class: str
    queue: str
    updated: float
    attempt: int = 1
    due: float | None = None
    worker: str = ""
    percent: float | None = None
    message: str = ""
    error_class: str = ""
    error_message: str = ""
    #: Each start of it that is known, the first one first.
    starts: tuple[Start, ...] = ()
    #: What the job stored by `self.store()`.
    stored: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: Whether the return value is kept for those who ask.
    keeps_result: bool = False
    _result: str = dataclasses.field(default="", repr=False)
    _result_error: str = dataclasses.field(default="", repr=False)
    _facts: str = dataclasses.field(default="", repr=False)

    @property
    def has_ended(self) -> bool:
        return self.state not in record.ALIVE

    @property
    def result(self) -> Any:
        """The return value. Raises `NoResultError` where there is none, or none that could be kept."""
        if self._result_error:
            raise NoResultError(f"Job {self.jid} ended well, but {self._result_error}")
        if not self._result:
            why = (
                "it keeps none; give its class result_ttl=…"
                if not self.keeps_result
                else f"it is {self.state}"
            )
            raise NoResultError(f"Job {self.jid} has no result: {why}.")
        return unpack(json.loads(self._result))


def of_fields(jid: str, fields: Mapping[str, str]) -> JobStatus:
    """The value of a hash; what cannot be read counts as absent."""
    own = {
        name.removeprefix(record.OWN): _unpacked(text)
        for name, text in fields.items()
        if name.startswith(record.OWN)
    }
    attempt = fields.get("attempt", "")
    return JobStatus(
        jid,
        fields.get("state", ""),
        fields.get("class", ""),
        fields.get("queue", ""),
        _number(fields.get("updated")) or 0.0,
        int(attempt) if attempt.isdigit() else 1,
        _number(fields.get("due")),
        fields.get("worker", ""),
        _number(fields.get("pct")),
        fields.get("message", ""),
        fields.get("error_class", ""),
        fields.get("error_message", ""),
        _starts(fields),
        own,
        fields.get("keeps") == "1",
        fields.get("result", ""),
        fields.get("result_error", ""),
        fields.get("facts", ""),
    )


def _starts(fields: Mapping[str, str]) -> tuple[Start, ...]:
    found = []
    for name, text in fields.items():
        order = name.removeprefix(record.START)
        if order != name and order.isdigit():
            at, _, worker = text.partition(" ")
            found.append((int(order), Start(_number(at) or 0.0, worker)))
    return tuple(start for _, start in sorted(found, key=lambda each: each[0]))


def payload_of(status: JobStatus) -> dict[str, Any]:
    """The job's payload as far as its status has it: no arguments, but what may hold the job up."""
    try:
        facts: dict[str, Any] = dict(json.loads(status._facts)) if status._facts else {}
    except (ValueError, TypeError):  # by other hands
        facts = {}
    facts |= {"jid": status.jid, "class": status.job_class, "queue": status.queue, "track": True}
    failures = status.attempt - (status.state != "retrying")
    if failures:
        facts["retry_count"] = failures
    if status.error_class:
        facts |= {"error_class": status.error_class, "error_message": status.error_message}
    return facts


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _unpacked(text: str) -> Any:
    try:
        return unpack(json.loads(text))
    except Exception:  # written by a newer version, or by other hands
        return text


def read(jid: str) -> JobStatus | None:
    """The status of that job; `None` where nothing is known of it. Raises redis-py's errors."""
    board = modes.board()
    if board is not None:
        fields = board.of(jid)
    else:
        found: Any = get_store().client.hgetall(record.key_of(jid))
        fields = {
            name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for name, value in found.items()
        }
    return of_fields(jid, fields) if fields.get("state") else None
