"""What is written about a failure: fields of the payload, and the record of one attempt.

An error's text is whatever a stranger's `__str__` makes of it: it may raise, be endless, or hold
what UTF-8 cannot. Nothing here raises for it.
"""

from __future__ import annotations

import base64
import json
import traceback
import zlib
from collections.abc import Callable
from typing import Any

MAX_MESSAGE = 10_000
MAX_TRACEBACK = 60_000
#: Failed attempts kept of a job, and for how long (seconds).
MAX_ATTEMPTS = 25
ATTEMPTS_TTL = 30 * 86_400


def clean(text: str, limit: int = MAX_MESSAGE) -> str:
    """Valid UTF-8 of at most `limit` characters."""
    return text[:limit].encode("utf-8", "replace").decode("utf-8")


def error_name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def error_text(error: BaseException) -> str:
    """The error's message; a placeholder that names the class where it has none to give."""
    try:
        return clean(str(error))
    except BaseException as second:  # whatever a foreign __str__ does, the failure is recorded
        return f"<{error_name(error)}, whose message cannot be had: {type(second).__qualname__}>"


def error_traceback(error: BaseException) -> str:
    """The traceback as text, shortened in the middle where it is very long."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException as second:
        text = f"<the traceback of {error_name(error)} cannot be had: {type(second).__qualname__}>"
    if len(text) > MAX_TRACEBACK:
        half = MAX_TRACEBACK // 2
        text = f"{text[:half]}\n  […]\n{text[-half:]}"
    return clean(text, MAX_TRACEBACK + 100)


def add_failure(payload: dict[str, Any], error: BaseException, now: float) -> None:
    """Write the failure's fields into the payload: class, message, first time, number of failures."""
    payload["error_class"] = error_name(error)
    payload["error_message"] = error_text(error)
    payload.setdefault("failed_at", round(now, 6))
    payload["retry_count"] = failures(payload) + 1


def failures(payload: dict[str, Any]) -> int:
    """Failed attempts so far; junk counts as none."""
    count = payload.get("retry_count", 0)
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0


def attempt_record(
    payload: dict[str, Any],
    error: BaseException,
    outcome: str,
    now: float,
    masked: Callable[[str], str] = str,
) -> str:
    """One failed attempt as JSON, its traceback compressed. `masked` takes out of a text what is not to be shown."""
    told = masked(error_traceback(error))
    return json.dumps(
        {
            "attempt": failures(payload),
            "failed_at": round(now, 6),
            "outcome": outcome,
            "error_class": error_name(error),
            "error_message": masked(error_text(error)),
            "traceback": base64.b64encode(zlib.compress(told.encode())).decode(),
        },
        separators=(",", ":"),
    )


def read_attempt(record: bytes) -> dict[str, Any]:
    """The record with its traceback as text again."""
    attempt: dict[str, Any] = json.loads(record)
    packed = attempt.get("traceback")
    if packed:
        attempt["traceback"] = zlib.decompress(base64.b64decode(packed)).decode()
    return attempt
