"""What a run that ended leaves in Redis, as effects for the step that settles it.

The record is JSON, put together from parts, since this is done for every job. A success is noted first
(`noted`), and the notes of all that are settled in one call share their effects (`effects_of`). The same
notes give the same effects, so a call may be repeated.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from django_cogworker.exceptions import JobFailedError
from django_cogworker.features.base import Run
from django_cogworker.features.history import arguments, names
from django_cogworker.features.history.buckets import LAST, bucket_of
from django_cogworker.jobs import registry
from django_cogworker.jobs.masking import masked_text
from django_cogworker.parsers import HistoryKept
from django_cogworker.payload.failure import (
    MAX_MESSAGE,
    clean,
    error_name,
    error_text,
    error_traceback,
    failures,
)
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Effect

Status = Literal["success", "failed"]

SUCCESS: Final = "success"
FAILED: Final = "failed"

#: Of a traceback so many lines are kept from its beginning and from its end, and so many characters.
TRACEBACK_LINES = 100
TRACEBACK_LENGTH = 20_000

_RUN_FIELDS = [f"r{number}" for number in range(LAST + 1)]
_WAIT_FIELDS = [f"w{number}" for number in range(LAST + 1)]

encode, quote = arguments.encode, arguments.quote


class Note(NamedTuple):
    """One run: its class, when it ended (text of epoch seconds, and hour), its record, its buckets."""

    job_class: str
    ended: str
    hour: int
    record: str
    run_field: str | None
    wait_field: str | None


@lru_cache(maxsize=1_000)
def _head(job_class: str, queue: str) -> str:
    return f'"class":{encode(job_class)},"queue":{encode(queue)},'


def noted(run: Run, more: str = "") -> Note:
    """The note of a run that ended here. `more` are further fields of its record."""
    payload, began, seconds = run.payload, run.began_at, run.seconds
    job_class = payload["class"]
    since = payload.get("enqueued_at")
    if type(since) is float or type(since) is int:
        wait = began - since if began > since else 0.0  # two hosts, two clocks
        waited, wait_field = f'"wait":{wait:.6f},', _WAIT_FIELDS[bucket_of(wait)]
    else:
        waited, wait_field = "", None
    tries = failures(payload) + 1 if "retry_count" in payload else 1
    ended = began + seconds
    return Note(
        job_class,
        f"{ended:.6f}",
        int(ended // 3600),
        f'{{"jid":{quote(payload["jid"])},{_head(job_class, payload["queue"])}"attempt":{tries},'
        f'"seconds":{seconds:.6f},{waited}{more}{arguments.fields(payload)}}}',
        _RUN_FIELDS[bucket_of(seconds)],
        wait_field,
    )


def noted_without_run(payload: dict[str, Any], attempt: int, more: str) -> Note:
    """The note of a failure without a run that we could have timed: it ended now."""
    ended = time.time()
    return Note(
        payload["class"],
        f"{ended:.6f}",
        int(ended // 3600),
        f'{{"jid":{quote(payload["jid"])},{_head(payload["class"], str(payload.get("queue")))}'
        f'"attempt":{attempt},{more}{arguments.fields(payload)}}}',
        None,
        None,
    )


def noted_failure(run: Run) -> Note:
    """The note of a run that failed, with its error: without the values of its arguments that are masked, since whoever
    reads it later has no arguments to know them by.
    """
    payload, error = run.payload, run.error
    if not run.began_at and (error is None or isinstance(error, JobFailedError)):
        # It failed in a worker that died since. What is left of the error stands in the payload.
        more = _error_in(payload, run.outcome)
        return noted_without_run(payload, failures(payload), more)
    more = (
        ""
        if error is None
        else _error_fields(
            run.outcome,
            error_name(error),
            masked_text(error_text(error), payload),
            masked_text(error_traceback(error), payload),
        )
    )
    if run.began_at:
        return noted(run, more)
    return noted_without_run(payload, failures(payload) + 1, more)


def noted_burial(payload: dict[str, Any]) -> Note:
    """The note of a job that was buried because it was running when its worker died."""
    return noted_without_run(payload, failures(payload), _error_in(payload, "dead"))


def _error_in(payload: dict[str, Any], outcome: str) -> str:
    """Of an error that is left in the payload alone."""
    message = masked_text(str(payload.get("error_message")), payload)
    return _error_fields(outcome, str(payload.get("error_class")), message)


def _error_fields(outcome: str, name: str, message: str, traceback: str = "") -> str:
    fields = {
        "outcome": outcome,
        "error_class": clean(name, 500),
        "error_message": clean(message, MAX_MESSAGE),
    }
    if traceback:
        fields["traceback"] = base64.b64encode(zlib.compress(_cut(traceback).encode())).decode()
    return f"{encode(fields)[1:-1]},"


def _cut(traceback: str) -> str:
    lines = traceback.splitlines(keepends=True)
    if len(lines) > 2 * TRACEBACK_LINES:
        lines[TRACEBACK_LINES:-TRACEBACK_LINES] = ["  […]\n"]
    text = "".join(lines)
    if len(text) > TRACEBACK_LENGTH:
        half = TRACEBACK_LENGTH // 2
        text = f"{text[:half]}\n  […]\n{text[-half:]}"
    return text


def effects_of(
    keys: Keys, kept: HistoryKept, status: Status, notes: Sequence[Note]
) -> tuple[Effect, ...]:
    """What the runs of the notes, which all ended with `status`, change in Redis."""
    tables: dict[tuple[str, int], dict[str, int]] = {}
    members: list[str] = []
    for job_class, ended, hour, record, run_field, wait_field in notes:
        members += (ended, record)
        table = tables.get((job_class, hour))
        if table is None:
            table = tables[job_class, hour] = {status: 0}
        table[status] += 1
        if run_field is not None:
            table[run_field] = table.get(run_field, 0) + 1
        if wait_field is not None:
            table[wait_field] = table.get(wait_field, 0) + 1
    latest = float(notes[-1].ended)
    most = kept.runs if status == SUCCESS else kept.failures
    oldest = f"{latest - kept.days * names.DAY:.0f}"
    runs = names.runs(keys, status)
    effects = [
        Effect("record", runs, (members[0], members[1], oldest, most, *members[2:])),
        Effect("expire", runs, ((kept.days + 1) * names.DAY,)),
    ]
    days: dict[int, int] = {}
    for (_, hour), table in tables.items():
        days[hour // 24] = days.get(hour // 24, 0) + table[status]
    for day, number in days.items():
        key = names.daily(keys, day)
        effects.append(Effect("hincrby", key, (status, number)))
        effects.append(Effect("expire", key, (kept.counter_days * names.DAY,)))
    return (*effects, *_times(keys, tables, latest))


def _times(
    keys: Keys, tables: dict[tuple[str, int], dict[str, int]], latest: float
) -> list[Effect]:
    """Effects for the histograms of the classes, and for the list of these."""
    effects: list[Effect] = []
    when = f"{latest:.0f}"
    seen: dict[str, None] = {}
    for (given, hour), table in tables.items():
        definition = registry.lookup(given)
        if definition is None:
            continue  # any text may stand in a payload; only real classes are bounded in number
        key = names.times(keys, definition.name, hour)
        pairs = [each for pair in table.items() for each in pair]
        effects.append(Effect("hincrby", key, tuple(pairs)))
        effects.append(Effect("expire", key, (names.TIMES_TTL,)))
        seen[definition.name] = None
    if seen:
        first, *others = seen
        bounds = (f"{latest - names.TIMES_TTL:.0f}", names.MAX_CLASSES)
        more = [each for name in others for each in (when, name)]
        effects.append(Effect("record", names.classes(keys), (when, first, *bounds, *more)))
        effects.append(Effect("expire", names.classes(keys), (names.TIMES_TTL,)))
    return effects
