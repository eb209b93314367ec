"""What a feature may take part in.

A feature brings options, middleware, hooks into the life of a job, and data (guards, effects) that
the core's scripts carry out in the same step as the move itself. It brings no Lua of its own into
them. A method that a feature does not override costs nothing: the core asks only those who answer.

A job's life, as features see it: `pushed` → `graduated`, if it was scheduled → `admit` → its middleware →
`watch` → `note` and `settled` → … Besides that `requeued` by a stop, `recovered` from a dead worker, `refiled` or
`removed` by hand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from django_cogworker.client.hooks import PushParts
from django_cogworker.jobs.context import JobContext, Listener
from django_cogworker.jobs.options import Option
from django_cogworker.store.values import Effect

#: The outcomes of runs that failed.
FAILURES = frozenset(("retrying", "dead", "killed", "discarded"))


@dataclasses.dataclass(
    slots=True
)  # not frozen: one is made for each job, and that costs four times as much
class Run:
    """How one run of a job ended.

    `outcome`: `finished`, `retrying`, `dead`, `killed`, `discarded`, `waiting` (it could not run here or
    now, and comes back), or what a feature refused it with. `began_at` is the host's time in epoch
    seconds, 0 where it did not run here; `seconds` how long it took; `delay` the seconds to its next try.
    """

    payload: dict[str, Any]
    outcome: str
    began_at: float = 0.0
    seconds: float = 0.0
    result: Any = None
    error: BaseException | None = None
    delay: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a job is, as a feature knows it without a search.

    `state`: `queued`, `scheduled`, `working`, `retrying`, or an end. `at`: when it is due (epoch
    seconds, by a host's clock), for those that wait in a set. `since`: when the feature heard of it last.
    `payload`: as much of the job's payload as the feature has.
    """

    state: str
    queue: str
    at: float | None = None
    worker: str = ""
    since: float | None = None
    payload: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """Why a job is not running: a code for programs, a sentence for people in their language, and what the
    sentence says as values that JSON can hold.
    """

    code: str
    text: str
    data: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Why a job is not run now. Without a `delay` it is dropped, acknowledged and counted nowhere; with
    one it waits so many seconds in the scheduled set. `reason` is for the log. `effects` belong to the step
    that files or drops it, before those of `settled`.
    """

    outcome: str
    reason: str
    delay: float | None = None
    effects: tuple[Effect, ...] = ()


class Worker(Protocol):
    """What a feature may ask of the worker that it is in."""

    @property
    def identity(self) -> str: ...

    @property
    def fates_known(self) -> bool:
        """Whether it has looked for dead workers, and has brought back what they held."""
        ...

    def give_up(self, payload: dict[str, Any], error: BaseException) -> None:
        """Wait no longer for this job (the dict that its run was given): if it still runs when the worker
        ends, it has failed with `error`.
        """
        ...

    def recycle(self, reason: str) -> None:
        """Fetch no more, let the jobs that run end, then end, for another one to take its place."""
        ...


class Clockwork(Protocol):
    """What a feature enqueues by the clock, as the test modes drive it: with their time, without Redis."""

    def next_after(self, now: float) -> float | None:
        """When there may be something to push again; `None` for never."""
        ...

    def push_due(self, now: float, *, watched: bool) -> None:
        """Push what is due. `watched`: a worker saw all the time since the last call pass."""
        ...


class Feature:
    """Base of features."""

    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    #: Factories in the manner of the settings `COGWORKER_CLIENT_MIDDLEWARE` and `COGWORKER_SERVER_MIDDLEWARE`.
    client_middleware: ClassVar[tuple[Callable[..., Any], ...]] = ()
    server_middleware: ClassVar[tuple[Callable[..., Any], ...]] = ()
    #: The feature concerns those jobs alone whose payload, as fetched, has one of these fields; none of them named:
    #: all jobs. A worker does not ask it about others when they start, run and end.
    concerns: ClassVar[frozenset[str]] = frozenset()
    #: `admit` answers by the payload and the clock alone, without Redis, so the test modes ask it too.
    admits_alone: ClassVar[bool] = False
    listeners: ClassVar[tuple[Listener, ...]] = ()

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        """Guards and effects for the push of this job."""
        return None

    def refused(self, payload: dict[str, Any], holder: str) -> None:
        """Told by the call that enqueued this job alone that somebody else has a claim. What is raised here
        reaches the caller.
        """

    def graduated(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        """Effects for the step that moves this job to its queue: it is due, or somebody wants it there."""
        return ()

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        """Asked before the job starts: why it is not to run now, or `None`. It may ask Redis where the feature does
        not concern all jobs.
        """
        return None

    def watch(self, context: JobContext) -> Callable[[], None] | None:
        """Called right before a job's own code, inside all middleware; what it returns is called right after it.
        Neither may block: both may be called on an event loop.
        """
        return None

    def cancelled(self, payload: dict[str, Any]) -> bool:
        """Asked while the job runs, perhaps often: whether somebody wants it to end."""
        return False

    def excused(self, payload: dict[str, Any], error: BaseException) -> Refused | None:
        """Asked when a run ended by an error: whether that is no failure, and what becomes of the job."""
        return None

    def failed(self, payload: dict[str, Any], error: BaseException) -> dict[str, Any]:
        """Fields for the record of a job that failed by this error, wherever it goes now: texts and numbers."""
        return {}

    def located(self, jid: str) -> Place | None:
        """Where the job is, if this feature knows."""
        return None

    def holding_up(self, payload: dict[str, Any], state: str) -> tuple[Reason, ...]:
        """Asked by people: why this feature does not let the job run now. `state` is `queued`, `scheduled`,
        `retrying` or `working`; the payload may lack arguments. One call to Redis at the most.
        """
        return ()

    def settled(self, run: Run) -> tuple[Effect, ...]:
        """Effects for the step that brings this job to its place."""
        return ()

    def note(self, run: Run) -> Any:
        """What to remember of a run that succeeded, or `None`. Unlike effects of `settled`, which each cost a
        step of their own, the notes of many jobs are carried out together: see `digest`.
        """
        return None

    def digest(self, notes: Sequence[Any]) -> tuple[Effect, ...]:
        """Effects for the notes of jobs that are acknowledged in one step."""
        return ()

    def requeued(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        """Effects for the step that puts back this job, which a stop has interrupted."""
        return ()

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        """Effects for the step that brings this job of a dead worker back.

        `fate`: `front` of its queue, `schedule` (it waits, then runs alone) or `dead`.
        """
        return ()

    def refiled(self, payload: dict[str, Any], place: str, wait: float) -> tuple[Effect, ...]:
        """Effects for the step in which somebody gives this job, which waits, another time or another queue in its
        set, or buries it.

        `place`: `schedule` or `retry`, where it is due in `wait` seconds, or `dead`.
        """
        return ()

    def removed(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        """Effects for the step that deletes this job, which waits, by somebody's wish."""
        return ()

    def clockwork(self, now: float, names: Sequence[str] | None) -> Clockwork | None:
        """What this feature enqueues by the clock, for a test whose clock begins now: all of it, or what has these
        names.
        """
        return None

    def over(self, run: Run) -> None:
        """Told, in the worker, that a run is over: its settlement is under way, and of a job that died, or was buried
        without a run, in Redis already. May block.
        """

    def counters(self) -> dict[str, int]:
        """Numbers for `cogworker stats`, by the names under which they are shown. May ask Redis."""
        return {}

    def known_keys(self) -> dict[str, str]:
        """Keys of this feature, and the type of each (`string`, `hash` …). What has another type is put out
        of the way. Asked about once a minute.
        """
        return {}

    def attached(self, worker: Worker) -> None:
        """Called once in each worker, before it fetches."""

    def beat(self) -> None:
        """Called by the heartbeat thread after each good beat."""

    def tick(self) -> None:
        """Called by the scheduler thread about once a second while the worker is not quiet."""

    def bulletin(self) -> None:
        """Called when somebody has posted a bulletin, before any job fetched since can start, and once
        at the start. From the fetcher's or the heartbeat's thread.
        """
