"""One attempt of a collected job, as a worker makes it, with the deaths that its worker is to die.

Features that need no Redis are asked first: they may drop the job. An error reaches the test, or, where errors are
recorded, it is a failed attempt: the class's hooks decide, the signals of the worker are sent, features hear of it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
import time
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from django_cogworker import clock
from django_cogworker.conf import PerConfig, get_config
from django_cogworker.exceptions import JobOrphanedError
from django_cogworker.features import registry as features
from django_cogworker.features.asking import Effects
from django_cogworker.features.base import Refused, Run
from django_cogworker.jobs import registry
from django_cogworker.payload.arguments import unpack_args, unpack_kwargs
from django_cogworker.payload.codec import check_format, decode, encode
from django_cogworker.payload.failure import failures
from django_cogworker.signals import announce, job_failed, job_finished, job_started
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Outgoing
from django_cogworker.testing.crashing import Bomb, WorkerKilled
from django_cogworker.testing.held import Ran
from django_cogworker.testing.how import AFTER, BEFORE, How, Point
from django_cogworker.testing.running import run
from django_cogworker.worker.admission import Admission
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.retries import Decision, decide
from django_cogworker.worker.settlement import VITAL_FIELDS, FailureSettler

logger = logging.getLogger("django_cogworker.jobs")

_death: PerConfig[DeathHooks] = PerConfig(DeathHooks)


@dataclasses.dataclass(frozen=True, slots=True)
class Fate:
    """What became of a job: `ran` tells it. It waits for its next attempt as `again`, in `delay` seconds;
    or it lies in the dead set as `dead`; or it is gone.
    """

    ran: Ran
    again: bytes | None = None
    delay: float = 0.0
    dead: dict[str, Any] | None = None

    @property
    def was_run(self) -> bool:
        """False where a feature dropped the job before."""
        return self.ran.attempt > 0


class Attempt:
    """One attempt of a job."""

    def __init__(self, job: Outgoing, how: How, zone: dt.tzinfo | None = None) -> None:
        self._job = job
        self._how = how
        self._zone = zone
        self._payload = decode(job.payload)
        check_format(self._payload)
        self._definition = registry.find_to_run(self._payload)
        self._deaths = 0
        self._begun = 0.0

    def carry_out(self) -> Fate:
        """Run it, with its deaths. Raises what the job raises where errors are to reach the caller."""
        refused = self._refused()
        if refused is not None:
            return self._turned_away(refused)
        self._starts()
        decision: list[Decision | Refused] = []
        try:
            for point in self._how.deaths():
                came_in_time = self._die(point, decision)
                if self._payload.get("at_most_once") and point != BEFORE:
                    return self._orphaned()
                if self._how.tries_all_lines and not came_in_time:
                    break
            result = run(self._definition, self._afresh(), self._judging(decision))
        except KeyboardInterrupt:  # whoever runs the tests
            raise
        except BaseException as error:
            if self._how.errors == "raise":
                error.add_note(self._said())
                raise
            return self._failed(error, decision[0] if decision else self._judge(error))
        return self._finished(result)

    def _starts(self) -> None:
        if self._how.errors == "record":
            target, jid = self._definition.target, self._job.jid
            announce(job_started, target, jid=jid, payload=self._payload)
        self._begun = time.monotonic()

    def _refused(self) -> Refused | None:
        for hook in features.taking_part("admit"):
            if hook.__self__.admits_alone:
                refused: Refused | None = hook(self._payload)
                if refused is not None:
                    return refused
        return None

    # Deaths.

    def _die(self, point: Point, decision: list[Decision | Refused]) -> bool:
        """Let the worker die there. False where the job's code had ended before."""
        came_in_time = True
        if point is AFTER:
            run(self._definition, self._afresh(), self._judging(decision))
        elif point != BEFORE:
            bomb = Bomb(self._definition, point)
            try:
                run(bomb.armed(), self._afresh(), self._judging(decision))
            except BaseException:
                if not bomb.exploded:
                    raise
            came_in_time = bomb.exploded
            decision.clear()
        self._deaths += 1
        return came_in_time

    def _afresh(self) -> dict[str, Any]:
        """The payload as a worker fetches it after those deaths."""
        self._payload = decode(self._job.payload)
        if self._deaths:
            self._payload["orphanings"] = self._deaths
        return self._payload

    def _orphaned(self) -> Fate:
        """A job that is to run once at most, and had begun."""
        error = JobOrphanedError("The worker died after this at-most-once job had started.")
        settlement, _, record = self._settler().settle(
            self._unit(), self._afresh(), error, Decision("dead")
        )
        self._settled(Run(record, "dead", error=error))
        _death().buried(self._definition, record, error)
        return Fate(self._ran("dead", error=error), dead=decode(settlement.payload or b""))

    # Ends.

    def _finished(self, result: Any) -> Fate:
        seconds = time.monotonic() - self._begun
        payload = self._vital()
        if self._how.errors == "record":
            self._settled(Run(payload, "finished", clock.now(), seconds, result))
            target, jid = self._definition.target, self._job.jid
            announce(job_finished, target, jid=jid, payload=payload, duration=seconds)
        return Fate(self._ran("finished", result))

    def _judging(self, decision: list[Decision | Refused]) -> Callable[[BaseException], None]:
        """Hears what `perform` itself raised, before any middleware does."""

        def failed(error: BaseException) -> None:
            if self._how.errors == "record" and not isinstance(error, WorkerKilled):
                decision[:] = [self._judge(error)]

        return failed

    def _judge(self, error: BaseException) -> Decision | Refused:
        excused = Admission().excused(self._payload, error)
        return decide(self._definition, self._payload, error) if excused is None else excused

    def _failed(self, error: BaseException, decision: Decision | Refused) -> Fate:
        if isinstance(decision, Refused):
            return self._turned_away(decision)
        payload, target = self._vital(), self._definition.target
        settlement, decision, record = self._settler().settle(
            self._unit(), payload, error, decision
        )
        seconds = time.monotonic() - self._begun
        outcome, delay = decision.outcome, decision.delay
        self._settled(Run(payload, outcome, clock.now(), seconds, None, error, delay))
        logger.warning(
            "%s %s failed (attempt %s): %s.",
            self._definition.name,
            self._job.jid,
            record.get("retry_count"),
            outcome,
            exc_info=error,
            extra={"jid": self._job.jid, "job_class": self._definition.name},
        )
        told = {"jid": self._job.jid, "payload": record, "error": error}
        announce(job_failed, target, **told, outcome=outcome)
        ran = self._ran(outcome, error=error)
        if outcome == "retrying":
            return Fate(ran, again=settlement.payload, delay=delay)
        if outcome == "discarded":
            return Fate(ran)
        _death().run(self._definition, record, error)
        return Fate(ran, dead=decode(settlement.payload or b""))

    def _turned_away(self, refused: Refused) -> Fate:
        delay = refused.delay or 0.0
        self._settled(Run(self._payload, refused.outcome, delay=delay))
        ran = dataclasses.replace(self._ran(refused.outcome), attempt=0)
        if refused.delay is None:
            return Fate(ran)
        return Fate(ran, again=encode(self._payload), delay=delay)

    def _settled(self, run: Run) -> None:
        """Features hear of it; what they want done in Redis is left."""
        Effects("settled").of_run(run)

    def _vital(self) -> dict[str, Any]:
        """The payload after the run; as it was where a middleware changed what the job is known by."""
        fetched = decode(self._job.payload)
        if all(self._payload.get(each) == fetched.get(each) for each in VITAL_FIELDS):
            return self._payload
        return fetched

    @staticmethod
    def _settler() -> FailureSettler:
        return FailureSettler(Keys(get_config().key_prefix))

    def _unit(self) -> Unit:
        return Unit(0, "", self._job.queue, self._job.payload, 0)

    def _ran(self, outcome: str, result: Any = None, error: BaseException | None = None) -> Ran:
        payload = decode(self._job.payload)
        return Ran(
            job_class=self._definition.target,
            jid=self._job.jid,
            args=tuple(unpack_args(payload.get("args") or [])),
            kwargs=unpack_kwargs(payload.get("kwargs") or {}),
            queue=self._job.queue,
            at=dt.datetime.fromtimestamp(
                clock.now(), self._zone or timezone.get_current_timezone()
            ),
            attempt=failures(payload) + 1,
            outcome=outcome,
            result=result,
            error=error,
        )

    def _said(self) -> str:
        """Which job it was, for the error's notes."""
        ran = self._ran("")
        given = [*map(repr, ran.args), *(f"{key}={each!r}" for key, each in ran.kwargs.items())]
        call = f"{self._definition.name}({', '.join(given)})"
        said = f"Raised by job {call}, jid {self._job.jid}, attempt {ran.attempt}"
        if self._deaths:
            said += f", after {self._deaths} deaths of its worker ({self._how})"
        return f"{said}."
