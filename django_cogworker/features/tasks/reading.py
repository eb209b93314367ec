"""A task's record as a value: its status, what was enqueued, its failed attempts. One round trip."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from django_cogworker.features.status import modes
from django_cogworker.features.status import record as status
from django_cogworker.features.status.reading import JobStatus, of_fields
from django_cogworker.features.tasks.record import ATTEMPT, FIELD
from django_cogworker.payload.arguments import unpack_args, unpack_kwargs
from django_cogworker.payload.failure import MAX_ATTEMPTS, clean, read_attempt
from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. `error_class` without a module is one of Python's own."""

    error_class: str
    error_message: str
    traceback: str


@dataclasses.dataclass(frozen=True, slots=True)
class TaskRecord:
    """What is known of a task. `told` is what was enqueued, see `record.field_of`; arguments unpacked."""

    status: JobStatus
    told: dict[str, Any]
    failures: tuple[Failure, ...] = ()


def read(jid: str) -> TaskRecord | None:
    """The record of that task; `None` where nothing is known of it. Raises redis-py's errors."""
    board = modes.board()
    if board is not None:
        fields = board.of(jid)
        names = sorted((each for each in fields if each.startswith(ATTEMPT)), key=_number)
        return _record(jid, fields, [fields[each].encode() for each in names])
    store = get_store()
    pipe: Any = store.client.pipeline(transaction=True)
    pipe.hgetall(status.key_of(jid))
    pipe.lrange(store.keys.attempts(clean(jid, 64)), -MAX_ATTEMPTS, -1)
    found, lines = pipe.execute()
    fields = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in found.items()
    }
    return _record(jid, fields, lines)


def in_test_mode() -> list[TaskRecord]:
    """All tasks that the test mode remembers, oldest first; none outside test modes."""
    board = modes.board()
    found = [] if board is None else [read(each) for each in board.jids()]
    return [each for each in found if each is not None]


def _number(name: str) -> int:
    return int(name.removeprefix(ATTEMPT))


def _record(jid: str, fields: Mapping[str, str], lines: list[bytes]) -> TaskRecord | None:
    if not fields.get("state") or FIELD not in fields:
        return None
    try:
        told: dict[str, Any] = dict(json.loads(fields[FIELD]))
        told["args"] = unpack_args(told["args"])
        told["kwargs"] = unpack_kwargs(told["kwargs"])
    except Exception:  # by other hands, or by a newer version
        return None
    failures = tuple(found for each in lines if (found := _failure(each)) is not None)
    return TaskRecord(of_fields(jid, fields), told, failures)


def _failure(line: bytes) -> Failure | None:
    try:
        told = read_attempt(line)
        return Failure(
            str(told["error_class"]), str(told["error_message"]), str(told.get("traceback", ""))
        )
    except Exception:  # by other hands, or half of it
        return None
