"""What is not a job, wrapped so that it can lie in the dead set and be looked at."""

from __future__ import annotations

import time
from typing import Any

from django_cogworker.payload.failure import clean, error_text
from django_cogworker.payload.job import new_jid

CLASS = "(unparseable)"
MAX_RAW = 100_000


def wrap(raw: bytes, queue: str | None, error: BaseException) -> dict[str, Any]:
    """A payload that holds `raw` whole (up to a limit) and says what is wrong with it."""
    now = round(time.time(), 6)
    return {
        "class": CLASS,
        "args": [],
        "queue": queue,
        "jid": new_jid(),
        "retry": False,
        "retry_count": 0,
        "enqueued_at": now,
        "failed_at": now,
        "error_class": type(error).__qualname__,
        "error_message": error_text(error),
        "raw_payload": clean(raw[: MAX_RAW * 4].decode("utf-8", "backslashreplace"), MAX_RAW),
    }
