"""The failed attempts of a job, as the step that settled each of them wrote it down."""

from __future__ import annotations

import dataclasses
from typing import Any

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.payload.failure import MAX_ATTEMPTS, clean, read_attempt
from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One of them. `attempt`: its number; `outcome`: what became of the job then, such as `retrying` or `dead`."""

    attempt: int
    failed_at: float
    outcome: str
    error_class: str
    error_message: str
    traceback: str


def attempts(jid: str) -> list[FailedAttempt]:
    """The last 25, the newest first; kept for 30 days, and until the job is deleted. One round trip.

    Raises redis-py's errors.
    """
    given: Any = jid
    if not isinstance(given, str) or not jid:
        raise InvalidQuery(f"attempts() takes the jid of a job, not {jid!r}.")
    store = get_store()
    client: Any = store.client
    lines = client.lrange(store.keys.attempts(clean(jid, 64)), -MAX_ATTEMPTS, -1)
    return [found for each in reversed(lines) if (found := _read(each)) is not None]


def _read(line: bytes) -> FailedAttempt | None:
    """What cannot be read is left out."""
    try:
        told = read_attempt(line)
        outcome, error_class, message = (
            str(told[name]) for name in ("outcome", "error_class", "error_message")
        )
        return FailedAttempt(
            int(told["attempt"]),
            float(told["failed_at"]),
            outcome,
            error_class,
            message,
            str(told.get("traceback", "")),
        )
    except Exception:  # by other hands, or half of it
        return None
