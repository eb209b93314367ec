"""The handling of a fetched job: all that is done with it before and after it runs.

Shared by the processors, which run jobs in threads, and the loop, which runs coroutines. It is all synchronous:
what may take a while (asking features, a start mark, receivers of signals, death hooks) the loop leaves to its
helpers, and the `may_block` questions tell when.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import redis
from django.dispatch import Signal

from django_cogworker.exceptions import UnknownFormat, UnknownJob, UnparseablePayload
from django_cogworker.features import registry as features
from django_cogworker.features.asking import Audience, Effects, Notes
from django_cogworker.features.base import Refused, Run
from django_cogworker.jobs import registry
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.arguments import TAG_MARK, check_tags
from django_cogworker.payload.codec import check_format, decode_on
from django_cogworker.payload.failure import failures
from django_cogworker.signals import (
    announce,
    job_failed,
    job_finished,
    job_started,
)
from django_cogworker.store.store import Store
from django_cogworker.store.values import Settlement
from django_cogworker.worker import settlement
from django_cogworker.worker.admission import Admission, turned_away
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.retries import Decision, decide

logger = logging.getLogger("django_cogworker.jobs")

#: Why a fetched job cannot be run here.
Unreadable = (UnparseablePayload, UnknownJob, UnknownFormat)


class Desk(Protocol):
    """Where is left what is to be settled: the fetcher."""

    def finished(self, unit: Unit) -> None: ...
    def settle(self, unit: Unit, settlement: Settlement) -> None: ...


@dataclasses.dataclass(slots=True)
class Turn:
    """One run of a fetched job."""

    unit: Unit
    payload: dict[str, Any]
    definition: Definition
    #: Kept, since a middleware may empty the payload.
    jid: str
    judge: Callable[[Turn, BaseException], Decision | Refused]
    #: Only features that concern all jobs have to do with it.
    plain: bool = False
    #: Rows are loaded for its arguments.
    has_rows: bool = False
    began_at: float = 0.0
    begun: float = 0.0
    duration: float = 0.0
    result: Any = None
    problem: BaseException | None = None
    decision: Decision | Refused | None = None
    vital: tuple[Any, ...] = ()

    @property
    def extra(self) -> dict[str, Any]:
        """For the log."""
        return {
            "jid": self.jid,
            "job_class": self.definition.name,
            "queue": self.unit.queue,
            "attempt": failures(self.payload) + 1,
        }

    def failed(self, error: BaseException) -> None:
        """What `perform` itself raised; decided before any middleware sees it."""
        self.decision = self.judge(self, error)

    def ends(self) -> None:
        self.duration = time.monotonic() - self.begun


def _is_heard(signal: Signal, turn: Turn) -> bool:
    return bool(signal.receivers) and signal.has_listeners(turn.definition.target)


class Handling:
    """That of one worker."""

    def __init__(
        self,
        *,
        store: Store,
        desk: Desk,
        death: DeathHooks,
        may_start: Callable[[], bool],
        errand: Callable[[Callable[[], None]], None],
    ) -> None:
        """`errand` has a processor do something as soon as one is free."""
        self._store = store
        self._desk = desk
        self._death = death
        self._may_start = may_start
        self._errand = errand
        self._failures = settlement.FailureSettler(store.keys)
        self._admission = Admission()
        self._settled, self._notes = Effects("settled"), Notes()
        self._audience = Audience()
        self._fields = features.fields()

    # Before the run.

    def may_start(self, unit: Unit) -> bool:
        """Whether this worker starts jobs now; else the job goes back."""
        if self._may_start():
            return True
        self._desk.settle(unit, settlement.given_back(unit))
        return False

    def read(self, unit: Unit) -> Turn:
        """Decode the job and find its class. Raises one of `Unreadable`."""
        payload = unit.job = decode_on(unit.queue, unit.payload)
        check_format(payload)
        definition = registry.find_to_run(payload)
        has_rows = TAG_MARK in unit.payload and check_tags(payload)
        plain = payload.keys().isdisjoint(self._fields)
        return Turn(unit, payload, definition, payload["jid"], self._judge, plain, has_rows)

    def unreadable(self, unit: Unit, error: Exception) -> None:
        """Bring a job to its place that `read` refused. May block."""
        if isinstance(error, (UnknownJob, UnknownFormat)) and unit.job is not None:
            self._unknown(unit, unit.job, error)
            return
        logger.error(
            "What lay on queue %s is no job (%s); it is in the dead set now.", unit.queue, error
        )
        self._desk.settle(unit, settlement.unparseable(unit, error))

    def may_block_when_it_begins(self, turn: Turn) -> bool:
        """Whether `begins` may take a while."""
        return _is_heard(job_started, turn)

    def may_block_at_start(self, turn: Turn) -> bool:
        """Whether `is_admitted` may take a while."""
        return not turn.plain or bool(turn.payload.get("at_most_once"))

    def is_admitted(self, turn: Turn) -> bool:
        """Ask the features, and write the start mark; where the job is not to run it is settled."""
        unit, payload = turn.unit, turn.payload
        refused = self._admission.refused(payload, plain=turn.plain)
        if refused is not None:
            run = Run(payload, refused.outcome, delay=refused.delay or 0.0)
            self._turn_away(unit, payload, refused, run)
            return False
        if payload.get("at_most_once") and not self._mark_started(unit):
            return False
        return not unit.given_up  # by the stop, in this very moment

    def _turn_away(self, unit: Unit, payload: dict[str, Any], refused: Refused, run: Run) -> None:
        filed = turned_away(unit, payload, refused)
        filed.effects = refused.effects + self._settled.of_run(run)
        self._desk.settle(unit, filed)
        self._audience.tell(run)

    def _judge(self, turn: Turn, error: BaseException) -> Decision | Refused:
        """What becomes of a job that ended by this error."""
        excused = self._admission.excused(turn.payload, error)
        return decide(turn.definition, turn.payload, error) if excused is None else excused

    def _mark_started(self, unit: Unit) -> bool:
        """Write down that an at-most-once job starts; without that it must not."""
        try:
            ours = self._store.mark_started(unit.identity, unit.ticket)
        except (redis.RedisError, OSError) as error:
            logger.warning(
                "An at-most-once job on queue %s goes back unrun: its start cannot be noted (%s).",
                unit.queue,
                error,
            )
            self._desk.settle(unit, settlement.given_back(unit))
            return False
        if not ours:
            self._desk.settle(unit, settlement.dropped(unit))
        unit.marked = ours
        return ours

    # The run.

    def begins(self, turn: Turn) -> None:
        """Told by whoever runs the job, right before it does. May block where `job_started` has receivers."""
        turn.vital = tuple(map(turn.payload.get, settlement.VITAL_FIELDS))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s %s starts.", turn.definition.name, turn.jid, extra=turn.extra)
        if job_started.receivers:
            announce(job_started, turn.definition.target, jid=turn.jid, payload=turn.payload)
        turn.began_at, turn.begun = time.time(), time.monotonic()

    # After the run.

    def may_block_at_end(self, turn: Turn) -> bool:
        """Whether `ended` may take a while."""
        if turn.problem is not None or _is_heard(job_finished, turn):
            return True
        return self._audience.hears(plain=turn.plain)

    def ended(self, turn: Turn) -> None:
        """The job has run: bring it to its place, and tell."""
        unit, payload = turn.unit, turn.payload
        if tuple(map(payload.get, settlement.VITAL_FIELDS)) != turn.vital:
            # A middleware took out or changed what the job is known by: what lies in Redis counts.
            payload = turn.payload = decode_on(unit.queue, unit.payload)
        if turn.problem is not None:
            self._failed(turn, turn.problem)
            return
        definition = turn.definition
        # The end of the job is noted first; nothing that comes after can make it run again.
        run = Run(payload, "finished", turn.began_at, turn.duration, turn.result)
        effects = self._settled.of_run(run, plain=turn.plain) if self._settled else ()
        notes = self._notes.of(run, plain=turn.plain) if self._notes else ()
        if effects or unit.marked:
            effects += self._notes.digest([notes])
            self._desk.settle(unit, settlement.finished(unit, effects))
        else:
            unit.notes = notes
            self._desk.finished(unit)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s %s finished in %.3f s.",
                definition.name,
                turn.jid,
                turn.duration,
                extra=turn.extra,
            )
        if job_finished.receivers:
            announce(
                job_finished,
                definition.target,
                jid=turn.jid,
                payload=payload,
                duration=turn.duration,
            )
        self._audience.tell(run, plain=turn.plain)

    def fault(self, unit: Unit, error: BaseException) -> None:
        """A fault of ours: the job may have run, so it does not go back to its queue."""
        filed = settlement.after_a_fault(unit, error)
        if unit.job is not None:
            outcome = "retrying" if filed.disposition == "retry" else "dead"
            filed.effects = self._settled.of_run(
                Run(unit.job, outcome, error=error, delay=filed.delay)
            )
        self._desk.settle(unit, filed)

    def _failed(self, turn: Turn, error: BaseException) -> None:
        payload = turn.payload
        decision = turn.decision or self._judge(turn, error)
        if isinstance(decision, Refused):
            delay = decision.delay or 0.0
            run = Run(payload, decision.outcome, turn.began_at, turn.duration, None, error, delay)
            self._turn_away(turn.unit, payload, decision, run)
            return
        run = Run(
            payload, decision.outcome, turn.began_at, turn.duration, None, error, decision.delay
        )
        self._fail(turn.unit, payload, turn.definition, error, decision, run)

    def _fail(
        self,
        unit: Unit,
        payload: dict[str, Any],
        definition: Definition | None,
        error: BaseException,
        decision: Decision,
        run: Run,
    ) -> None:
        filed, decision, record = self._failures.settle(unit, payload, error, decision)
        # Asked now: where the failure could not be recorded as it is, the decision is another one.
        ended = dataclasses.replace(run, outcome=decision.outcome, delay=decision.delay)
        filed.effects += self._settled.of_run(ended)
        name = payload["class"]
        self._log_failure(name, record, error, decision)
        target = None if definition is None else definition.target
        dies = decision.outcome in ("dead", "killed")
        if dies:
            filed.done = threading.Event()
            filed.late = lambda: self._errand(lambda: self._death.run(definition, record, error))
        # Said before the job is filed: its retry may start the moment after.
        announce(
            job_failed,
            target,
            jid=record.get("jid"),
            payload=record,
            error=error,
            outcome=decision.outcome,
        )
        self._desk.settle(unit, filed)
        if not dies:
            self._audience.tell(ended)
        if filed.done is not None:
            # The hooks come after the job is in the dead set. While Redis is away they wait with this processor;
            # where the dead set alone is unusable the processor goes on, and the hooks come late.
            filed.done.wait()
            if filed.verdict == 1:
                self._death.run(definition, record, error)

    @staticmethod
    def _log_failure(
        name: str, record: dict[str, Any], error: BaseException, decision: Decision
    ) -> None:
        attempt, jid = record.get("retry_count"), record.get("jid")
        extra = {"jid": jid, "job_class": name, "queue": record.get("queue"), "attempt": attempt}
        if decision.outcome == "retrying":
            logger.warning(
                "%s %s failed (attempt %s); it is tried again in %.1f s.",
                name,
                jid,
                attempt,
                decision.delay,
                exc_info=error,
                extra=extra,
            )
        elif decision.outcome == "discarded":
            logger.warning(
                "%s %s failed and is discarded (attempt %s).",
                name,
                jid,
                attempt,
                exc_info=error,
                extra=extra,
            )
        else:
            logger.error(
                "%s %s failed for good (attempt %s); it is in the dead set.",
                name,
                jid,
                attempt,
                exc_info=error,
                extra=extra,
            )

    def _unknown(
        self, unit: Unit, payload: dict[str, Any], error: UnknownJob | UnknownFormat
    ) -> None:
        """No attempt is used up: the next deploy may know the job."""
        jid, name = payload["jid"], payload["class"]
        filed = settlement.waiting(unit, payload)
        if filed is None:
            run = Run(payload, "dead", error=error)
            self._fail(unit, payload, None, error, Decision("dead"), run)
            return
        logger.warning(
            "Job %s waits %.0f s: %s",
            jid,
            filed.delay,
            error,
            extra={"jid": jid, "job_class": name},
        )
        filed.effects = self._settled.of_run(Run(payload, "waiting", delay=filed.delay))
        self._desk.settle(unit, filed)
