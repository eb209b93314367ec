"""A state: everything that decides what can happen next, and what must be remembered to judge it.

All parts are tuples, so that a state can be a key of a dict. Fields said to be *ghosts* exist in no
real part of the system: they remember what the invariants need.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

End: TypeAlias = Literal["", "ack", "retry", "front", "dead", "drop"]
#: Of a dead worker's job; `retry` stands for the scheduled set here.
Fate: TypeAlias = Literal["front", "retry", "dead"]
Phase: TypeAlias = Literal["taken", "asked", "yes", "no", "running"]


# What Redis holds.


class Entry(NamedTuple):
    """A field of the hash `workers:<identity>`."""

    ticket: int
    job: int
    #: The field `!<ticket>`.
    marked: bool = False
    #: Ghost: its holder has started it.
    started: bool = False


class Identity(NamedTuple):
    """What Redis holds about one identity."""

    entries: tuple[Entry, ...] = ()
    #: Its field in `holders`; 0: none.
    granted: int = 0
    #: Whether it stands in `beats`, `members` and `processes`.
    registered: bool = False
    tombstone: Literal["", "left", "buried"] = ""


class Waiting(NamedTuple):
    """A member of the scheduled or the retrying set. Its bytes are those of one stay with a worker,
    since each end of a stay writes another payload.
    """

    job: int
    identity: int
    ticket: int


class Redis(NamedTuple):
    #: The next to run first.
    queue: tuple[int, ...]
    #: The scheduled and the retrying set in one: nothing here depends on which it is.
    waiting: tuple[Waiting, ...]
    dead: tuple[int, ...]
    #: Per lane the number of its last push; the result is always the same here.
    lanes: tuple[int, ...]
    identities: tuple[Identity, ...]
    #: Only where `fetch_in_one_step` is off: taken from the queue, in no hash yet.
    limbo: tuple[tuple[int, Entry], ...] = ()


# What travels.


class Push(NamedTuple):
    lane: int
    number: int
    job: int


class Item(NamedTuple):
    """The end of a job with this worker. It brings the payload along that is to be written."""

    ticket: int
    job: int
    end: End


class Exchange(NamedTuple):
    identity: int
    first: int
    wanted: int
    #: Whether it names queues to take from.
    looks: bool
    items: tuple[Item, ...]


class Mark(NamedTuple):
    identity: int
    ticket: int


class Leave(NamedTuple):
    identity: int


class Orphan(NamedTuple):
    """What a recoverer has read and decided about one job."""

    ticket: int
    job: int
    marked: bool
    fate: Fate


class Recover(NamedTuple):
    identity: int
    orphans: tuple[Orphan, ...]


class Graduate(NamedTuple):
    member: Waiting


class Refile(NamedTuple):
    """Somebody's wish for one job: out of the set where it waits, off its queue, or back from the dead."""

    source: Literal["waiting", "queue", "dead"]
    member: Waiting
    to: Literal["queue", "retry", "dead", "gone"]


Packet: TypeAlias = Push | Exchange | Mark | Leave | Recover | Graduate


class Reply(NamedTuple):
    """The answer to an exchange."""

    buried: bool
    first: int
    jobs: tuple[tuple[int, int], ...] = ()


# Who acts.


class Client(NamedTuple):
    """One that pushes one job after the other."""

    job: int
    lane: int = 0
    number: int = 0
    phase: Literal["idle", "sent", "answered"] = "idle"
    #: Whether a try of this push has had no answer.
    doubt: bool = False


class Held(NamedTuple):
    """What a worker believes to hold."""

    ticket: int
    job: int
    #: Whether a processor has taken it.
    taken: bool = False
    #: Where it is to go, once that is known.
    end: End = ""


class Run(NamedTuple):
    """What a processor is at. Before an at-most-once job runs, its start has to be marked."""

    identity: int
    ticket: int
    job: int
    phase: Phase


class Worker(NamedTuple):
    life: Literal["up", "stopping", "gone"] = "up"
    identity: int = 0
    #: Whether the identity has had a good beat.
    present: bool = True
    #: The first ticket of the next call.
    first: int = 1
    #: How many jobs the calls without an answer had asked for.
    uncertain: int = 0
    held: tuple[Held, ...] = ()
    runs: tuple[Run, ...] = ()
    asked: Exchange | None = None
    reply: Reply | None = None


class Job(NamedTuple):
    """Ghost: the history of a job, as far as it matters."""

    written: int = 0
    confirmed: bool = False
    #: How often a success of it was settled.
    done: int = 0
    #: How often a recovery brought it back.
    orphaned: int = 0
    #: How often it was started; counted for at-most-once jobs alone.
    starts: int = 0


class Faults(NamedTuple):
    """How many of each kind may still happen."""

    crashes: int
    losses: int
    client_losses: int
    verdicts: int
    failures: int
    stops: int
    returns: int


class State(NamedTuple):
    redis: Redis
    client: Client
    workers: tuple[Worker, ...]
    #: Under way, with nobody who waits for the answer; each may arrive once, at any time, or never.
    packets: tuple[Packet, ...]
    jobs: tuple[Job, ...]
    faults: Faults
    #: Ghost: the rule that the last step broke, if any.
    wrong: str = ""


class Step(NamedTuple):
    """A step that can be taken, and where it leads."""

    what: str
    state: State
    #: Whether it is a fault, or something that happens to a system and need not.
    fault: bool = False
