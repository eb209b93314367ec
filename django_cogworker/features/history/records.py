"""Records of runs, as they lie in Redis and as they are told: one is read, or left out with a log line."""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
import zlib
from typing import Any

from django_cogworker.features.history.writing import Status
from django_cogworker.store.scripted import text

logger = logging.getLogger("django_cogworker")


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One attempt. Times are epoch seconds, durations seconds; `None` is "not known".

    `started_at` is `None` where nobody timed the run (an unknown class, a dead worker). `args` is `None` where
    the arguments were too long; then `args_cut` has their beginning as text. `outcome` is what became of a
    job that failed: `retrying`, `dead`, `killed` or `discarded`.
    """

    jid: str
    job_class: str
    queue: str
    status: Status
    attempt: int
    finished_at: float
    started_at: float | None = None
    seconds: float | None = None
    wait: float | None = None
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    args_cut: str | None = None
    outcome: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    traceback: str | None = None


def read(
    status: Status, member: bytes, finished_at: float, *, unpack: bool = True
) -> HistoryEntry | None:
    """The run of that record; `None` where it is none. Without `unpack` its traceback is left out."""
    try:
        record = json.loads(member)
        packed, seconds = record.get("traceback"), record.get("seconds")
        return HistoryEntry(
            jid=record["jid"],
            job_class=record["class"],
            queue=record["queue"],
            status=status,
            attempt=record["attempt"],
            finished_at=finished_at,
            started_at=None if seconds is None else round(finished_at - seconds, 6),
            seconds=seconds,
            wait=record.get("wait"),
            args=record.get("args"),
            kwargs=record.get("kwargs"),
            args_cut=record.get("args_cut"),
            outcome=record.get("outcome"),
            error_class=record.get("error_class"),
            error_message=record.get("error_message"),
            traceback=zlib.decompress(base64.b64decode(packed)).decode()
            if packed and unpack
            else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        logger.error("The history holds something that is no record of ours: %.200s.", text(member))
        return None
