"""What the floors above may ask of Redis.

`Verbs` is the contract. `scripted` carries it out by Lua scripts and keeps every promise; `plain`
does the same with single commands and transactions for servers that forbid scripts, and keeps fewer
(see `docs/guarantees.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from django_cogworker.store.refiling import Refiling
from django_cogworker.store.values import (
    Beat,
    BeatReply,
    DueJobs,
    Effect,
    ExchangeReply,
    ExchangeRequest,
    Move,
    Outgoing,
    Refusal,
)


class Verbs(Protocol):
    """All of them raise redis-py's errors where the call as a whole failed."""

    #: Whether a job in progress is known to Redis, and so survives its worker.
    reliable: bool

    def push(self, lane: str, number: int, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        """Write the jobs; one verdict each, `None` for "taken"."""
        ...

    def exchange(self, request: ExchangeRequest) -> ExchangeReply:
        """Settle and fetch in one step."""
        ...

    def mark_started(self, identity: str, ticket: int) -> bool:
        """Note that an at-most-once job starts; false where the ticket is not ours any more."""
        ...

    def due(self, limit: int) -> DueJobs: ...

    def graduate(self, source: str, moves: Sequence[Move]) -> list[int | str]:
        """Move due jobs out of the set with that key; per job 1, 0 (gone) or an error text."""
        ...

    def beat(self, beat: Beat) -> BeatReply: ...

    def leave(self, identity: str, host: str = "") -> int:
        """Take the presence away; how many jobs the identity still holds."""
        ...

    def remove(
        self, key: str, members: Sequence[tuple[bytes, tuple[Effect, ...]]]
    ) -> list[int | str]:
        """Take jobs, with their effects, out of a queue's list or a set; per job 1, 0 (gone) or an
        error text.
        """
        ...

    def refile(self, source: str, items: Sequence[Refiling]) -> list[int | str]:
        """Move jobs from where they wait (a key) to where somebody wants them; per job 1, 0 (gone: somebody
        was quicker) or an error text (it stays).
        """
        ...

    def apply(self, effects: Sequence[Effect]) -> None:
        """Carry out effects on their own; one that fails does not stop the others."""
        ...

    def resume(self, queue: str) -> bool: ...

    def signal(self, identity: str, command: str) -> bool: ...
