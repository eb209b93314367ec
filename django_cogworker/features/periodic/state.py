"""What a process knows of an entry from one look to the next, and what the push of a slot is told."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from django_cogworker.features.periodic.entry import Entry


class State:
    """What this process knows of one entry."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.unusable = False
        self.next_due: int | None = None
        self.looked_at = float("-inf")  # Redis's time of the last look
        self.since = float("-inf")  # slots after this moment are on time
        self.blocked_since: float | None = None
        self.rest_until = 0.0  # monotonic
        self.pause = 0.0


class Claim(NamedTuple):
    """What the push of a slot's job claims, and writes down about slots before it."""

    entry: Entry
    left_out: tuple[dict[str, Any], ...] = ()


#: For which this very push is made: its guards are wanted.
claiming: ContextVar[Claim | None] = ContextVar("cogworker_claiming_slot", default=None)
