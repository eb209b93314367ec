"""What travels between the floors above and Redis: plain values, no behaviour worth the name."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Literal

Disposition = Literal["ack", "schedule", "retry", "dead", "front"]
Counter = Literal["processed", "failed", ""]

#: A fleet without any beat for so long counts as new (seconds).
FLEET_GAP = 15.0


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """Something a feature wants done in the same step as a move of a job. The ops are a closed
    list:

    `hincrby` (field, by, and further pairs), `hset` (field, value, and further pairs), `hdel` (field …),
    `advance` (field, number, seconds, and pairs: they are set and the hash lives for so many seconds,
    with the number in that field, unless a higher number is there already), `append` (value, at most so
    many), `record` (score, member, lowest score that is kept, at most so many, and further pairs of
    score and member, 1,000 at most), `expire` (seconds), `delete` (), `delete_if_owner` (owner),
    `expire_if_owner` (owner, seconds), `hold` (owner, seconds: extend it, or take it anew where nobody
    has it), `forget` (member …: out of what was recorded), `tally` (field, moment, at most so many
    fields, oldest moment that is kept, text: one more of that field in a table, see `tally`).

    Three keep a line of jobs that wait in the scheduled set for a key to be free: `enlist` (rank, at most so
    many, seconds that the line lives) puts the job of the step into it as it is filed now, `delist` () takes it
    out as it was filed, and `hasten` () makes the first of the line that is still in the set due at once,
    where the key is free; its `others` are that key, the set, and the tokens that wake a worker.
    """

    op: Literal[
        "hincrby",
        "hset",
        "hdel",
        "advance",
        "append",
        "record",
        "expire",
        "delete",
        "delete_if_owner",
        "expire_if_owner",
        "hold",
        "forget",
        "enlist",
        "delist",
        "hasten",
        "tally",
    ]
    key: str
    args: tuple[str | int, ...] = ()
    #: Further keys that it touches.
    others: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """A key that must be claimed for `owner`, for `ttl` seconds, or the push is refused as a
    duplicate.

    `claim`: nobody may have it (but the owner itself). `take`: it becomes the owner's, whoever had
    it. `rises`: the owner is a number, which must be above the one that is there.

    `ousted`: with `take`, the key of a hash in which the owner before is noted; it lives at least as long as
    either claim. `through_run` is for the test modes, which have no steps to free a claim in: whether it
    lasts until the job has run, or only until it starts.
    """

    key: str
    owner: str
    ttl: int
    kind: Literal["claim", "take", "rises"] = "claim"
    ousted: str = ""
    through_run: bool = True


@dataclasses.dataclass(slots=True)
class Outgoing:
    """A job on its way to Redis: encoded, with the place it goes to.

    `at` is the due time in epoch seconds, or `None` for "on its queue, now". `priority` is -100 to
    100.
    """

    jid: str
    queue: str
    payload: bytes
    priority: int = 0
    at: float | None = None
    guards: tuple[Guard, ...] = ()
    effects: tuple[Effect, ...] = ()
    #: Called by the client once the job has been taken; must not raise.
    taken: Callable[[], None] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why one job of a push was not taken: `duplicate` and who has the claim, or the text of an
    error.
    """

    reason: str

    @property
    def is_duplicate(self) -> bool:
        return self.reason.startswith("duplicate")

    @property
    def holder(self) -> str:
        """The owner of what could not be claimed: mostly a jid."""
        return self.reason.partition(" ")[2] if self.is_duplicate else ""


@dataclasses.dataclass(slots=True)
class Settlement:
    """Where a fetched job goes. `delay` in seconds; `payload` replaces the stored one unless
    `None`.
    """

    ticket: int
    disposition: Disposition
    payload: bytes | None = None
    delay: float = 0.0
    queue: str = ""
    priority: int = 0
    counter: Counter = ""
    effects: tuple[Effect, ...] = ()
    #: Set when the fetcher knows the verdict, for those who wait for it. A text says that Redis
    #: could not do it now; it is tried again, and `late` is called when it is done at last.
    done: threading.Event | None = None
    verdict: int | str | None = None
    late: Callable[[], None] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """A fetched job: its ticket, its queue, Redis's time of the fetch (ms), its raw payload."""

    ticket: int
    queue: str
    fetched_ms: int
    payload: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class ExchangeRequest:
    """One call of the fetcher: what to settle, and what to fetch for which tickets."""

    identity: str
    first_ticket: int
    wanted: int
    queues: Sequence[str]
    acknowledged: Sequence[int]
    settlements: Sequence[Settlement]
    #: What features want done for all that are acknowledged together; done only if they really were held.
    notes: tuple[Effect, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ExchangeReply:
    """`due_ms` is the wait until the next due job, or -1. `buried`: the identity has a tombstone.
    `bulletin`: a number that changes when workers have something to read.
    """

    buried: bool
    next_ticket: int
    due_ms: int
    verdicts: Sequence[int | str]
    jobs: Sequence[Taken]
    errors: Sequence[str]
    bulletin: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class DueJobs:
    """The oldest due members of both sets, and the wait in ms until there may be more (-1: none
    known).
    """

    scheduled: Sequence[bytes]
    retrying: Sequence[bytes]
    wait_ms: int
    errors: Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """A due job on its way to its queue (`queue` empty: it is buried)."""

    member: bytes
    payload: bytes
    queue: str
    priority: int = 0
    effects: tuple[Effect, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Beat:
    """What a worker says of itself with each beat. `info` is JSON."""

    identity: str
    info: str
    busy: int
    quiet: bool
    queues: Sequence[str]
    #: Facts for those who may have to judge whether it lives (JSON), and its host ('' if unknown).
    facts: str = ""
    host: str = ""
    #: How long a fleet may go without any beat and still be the same one.
    gap: float = FLEET_GAP


@dataclasses.dataclass(frozen=True, slots=True)
class Survey:
    """Workers that are silent, and those on one host, each as (identity, facts as JSON)."""

    silent: Sequence[tuple[str, str]]
    neighbours: Sequence[tuple[str, str]]
    errors: Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Filed:
    """Where a job that failed belongs, though it could not be written there yet: the set, the due
    time in epoch seconds, the payload with its failure.
    """

    place: Literal["retry", "dead"]
    at: float
    payload: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """A job that some worker holds. `marked`: an at-most-once job whose start is written down;
    `filed`: it has run and failed.
    """

    ticket: int
    queue: str
    payload: bytes
    marked: bool = False
    filed: Filed | None = None
    #: Whether there is such a note at all; it may be unreadable.
    noted: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it is known in Redis that it began."""
        return self.marked or self.noted


@dataclasses.dataclass(frozen=True, slots=True)
class Recovered:
    """A job of a dead worker, as it was read, on its way to where it belongs. `delay` in seconds; for
    `retry` the due time.
    """

    held: Held
    disposition: Literal["front", "schedule", "retry", "dead"]
    payload: bytes
    queue: str
    priority: int = 0
    delay: float = 0.0
    effects: tuple[Effect, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class RecoverReply:
    """`dead` false: the worker lives and nothing was done. `left`: how many jobs it still holds."""

    dead: bool
    verdicts: Sequence[int | str]
    left: int


@dataclasses.dataclass(frozen=True, slots=True)
class BeatReply:
    """Redis's time, and the standing remote command as (word, id) or `None`."""

    time: float
    command: tuple[str, str] | None
    errors: Sequence[str]
    bulletin: int = 0
    #: Others took it for dead, and nothing was written.
    buried: bool = False
