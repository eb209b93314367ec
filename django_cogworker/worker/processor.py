"""A processor: one thread that runs jobs, one after the other.

Per job: take it from the hand → decode → find its class → run it through the server chain → hand
its settlement to the fetcher. It makes no Redis call of its own, save the start mark of an
at-most-once job. Whatever the job raises, exits and interrupts included, is that job's failure.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import redis

from django_cogworker.exceptions import UnknownFormat, UnknownJob, UnparseablePayload
from django_cogworker.features.asking import Effects, Notes
from django_cogworker.features.base import Refused, Run
from django_cogworker.jobs import registry
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.arguments import TAG_MARK, check_tags
from django_cogworker.payload.codec import check_format, decode_on
from django_cogworker.signals import (
    announce,
    job_failed,
    job_finished,
    job_started,
)
from django_cogworker.store.store import Store
from django_cogworker.store.values import Settlement
from django_cogworker.worker import settlement, surroundings
from django_cogworker.worker.admission import Admission, turned_away
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.hand import Hand, Unit
from django_cogworker.worker.orphans import runs_alone
from django_cogworker.worker.retries import Decision, decide
from django_cogworker.worker.runner import Runner
from django_cogworker.worker.solitude import Solitude

logger = logging.getLogger("django_cogworker.jobs")


class Desk(Protocol):
    """Where processors leave what is to be settled: the fetcher."""

    def finished(self, unit: Unit) -> None: ...
    def settle(self, unit: Unit, settlement: Settlement) -> None: ...


class Processor:
    """Runs jobs until the hand is closed. Processors of one worker share everything but their
    thread.
    """

    def __init__(
        self,
        *,
        store: Store,
        hand: Hand,
        desk: Desk,
        runner: Runner,
        death: DeathHooks,
        solitude: Solitude,
        may_start: Callable[[], bool],
    ) -> None:
        self._store = store
        self._hand = hand
        self._desk = desk
        self._runner = runner
        self._death = death
        self._solitude = solitude
        self._may_start = may_start
        self._failures = settlement.FailureSettler(store.keys)
        self._admission = Admission()
        self._settled, self._notes = Effects("settled"), Notes()

    def loop(self, place: int) -> None:
        """The body of the thread of that place."""
        try:
            while (unit := self._hand.take(place)) is not None:
                try:
                    self._process(unit)
                except BaseException as error:
                    # A fault of ours: the job may have run, so it does not go back to its queue.
                    logger.critical("A processor failed at its own work.", exc_info=True)
                    self._desk.settle(unit, self._after_a_fault(unit, error))
                finally:
                    self._hand.done(place, unit)
        finally:
            surroundings.thread_ends()

    def _after_a_fault(self, unit: Unit, error: BaseException) -> Settlement:
        filed = settlement.after_a_fault(unit, error)
        if unit.job is not None:
            outcome = "retrying" if filed.disposition == "retry" else "dead"
            filed.effects = self._settled.of_run(
                Run(unit.job, outcome, error=error, delay=filed.delay)
            )
        return filed

    def _process(self, unit: Unit) -> None:
        if not self._may_start():
            self._desk.settle(unit, settlement.given_back(unit))
            return
        try:
            payload = decode_on(unit.queue, unit.payload)
        except UnparseablePayload as error:
            logger.error(
                "What lay on queue %s is no job (%s); it is in the dead set now.", unit.queue, error
            )
            self._desk.settle(unit, settlement.unparseable(unit, error))
            return
        unit.job = payload
        try:
            check_format(payload)
            definition = registry.find(payload["class"])
            if TAG_MARK in unit.payload:
                check_tags(payload)
        except (UnknownJob, UnknownFormat) as error:
            self._unknown(unit, payload, error)
            return
        if runs_alone(payload):
            with self._solitude.alone() as away:
                if not away:
                    logger.warning(
                        "%s %s runs alone: its worker died %d times while it was running.",
                        definition.name,
                        payload["jid"],
                        payload["orphanings"],
                        extra={"jid": payload["jid"], "job_class": definition.name},
                    )
                    self._start(unit, payload, definition)
                else:
                    self._desk.settle(unit, settlement.postponed(unit, away))
            return
        self._start(unit, payload, definition)

    def _start(self, unit: Unit, payload: dict[str, Any], definition: Definition) -> None:
        refused = self._admission.refused(payload)
        if refused is not None:
            run = Run(payload, refused.outcome, delay=refused.delay or 0.0)
            self._turn_away(unit, payload, refused, run)
            return
        if payload.get("at_most_once") and not self._mark_started(unit):
            return
        if unit.given_up:  # by the stop, in this very moment
            return
        self._run(unit, payload, definition)

    def _turn_away(self, unit: Unit, payload: dict[str, Any], refused: Refused, run: Run) -> None:
        filed = turned_away(unit, payload, refused)
        filed.effects = self._settled.of_run(run)
        self._desk.settle(unit, filed)

    def _judge(
        self, definition: Definition, payload: dict[str, Any], error: BaseException
    ) -> Decision | Refused:
        """What becomes of a job that ended by this error."""
        excused = self._admission.excused(payload, error)
        return decide(definition, payload, error) if excused is None else excused

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

    def _run(self, unit: Unit, payload: dict[str, Any], definition: Definition) -> None:
        jid, name = payload["jid"], definition.name
        decisions: list[Decision | Refused] = []
        vital = [(each, payload.get(each)) for each in settlement.VITAL_FIELDS]

        def failed(error: BaseException) -> None:
            decisions.append(self._judge(definition, payload, error))

        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s %s starts.", name, jid, extra={"jid": jid, "job_class": name})
        if job_started.receivers:
            announce(job_started, definition.target, jid=jid, payload=payload)
        began_at, begun = time.time(), time.monotonic()
        result: Any = None
        problem: BaseException | None = None
        try:
            surroundings.before_job()
            result = self._runner.run(definition, payload, failed)
        except BaseException as error:  # also exits and interrupts: the job's, not the worker's
            problem = error
        duration = time.monotonic() - begun
        self._tidy(jid)
        if any(payload.get(each) != value for each, value in vital):
            # A middleware took out or changed what the job is known by: what lies in Redis counts.
            payload = decode_on(unit.queue, unit.payload)
        if problem is not None:
            decision = decisions[-1] if decisions else self._judge(definition, payload, problem)
            if isinstance(decision, Refused):
                delay = decision.delay or 0.0
                run = Run(payload, decision.outcome, began_at, duration, None, problem, delay)
                self._turn_away(unit, payload, decision, run)
                return
            run = Run(payload, decision.outcome, began_at, duration, None, problem, decision.delay)
            self._fail(unit, payload, definition, problem, decision, run)
            return
        # The end of the job is noted first; nothing that comes after can make it run again.
        run = Run(payload, "finished", began_at, duration, result)
        effects = self._settled.of_run(run) if self._settled else ()
        notes = self._notes.of(run) if self._notes else ()
        if effects or unit.marked:
            effects += self._notes.digest([notes])
            self._desk.settle(unit, settlement.finished(unit, effects))
        else:
            unit.notes = notes
            self._desk.finished(unit)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s %s finished in %.3f s.",
                name,
                jid,
                duration,
                extra={"jid": jid, "job_class": name},
            )
        if job_finished.receivers:
            announce(job_finished, definition.target, jid=jid, payload=payload, duration=duration)

    def _tidy(self, jid: str) -> None:
        try:
            surroundings.after_job(jid)
        except Exception:
            logger.exception("Tidying up after job %s failed.", jid, extra={"jid": jid})

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
            filed.late = lambda: self._hand.errand(
                lambda: self._death.run(definition, record, error)
            )
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
        extra = {"jid": record.get("jid"), "job_class": name}
        attempt, jid = record.get("retry_count"), record.get("jid")
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
