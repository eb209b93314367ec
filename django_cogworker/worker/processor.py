"""A processor: one thread that runs jobs, one after the other.

Per job: take it from the hand → decode → find its class → run it through the server chain → hand
its settlement to the fetcher. It makes no Redis call of its own, save the start mark of an
at-most-once job. Whatever the job raises, exits and interrupts included, is that job's failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context

from django_cogworker.store.store import Store
from django_cogworker.worker import settlement, surroundings
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.hand import Hand, Unit
from django_cogworker.worker.handling import Desk, Handling, Turn, Unreadable
from django_cogworker.worker.orphans import runs_alone
from django_cogworker.worker.runner import Runner
from django_cogworker.worker.solitude import Solitude

logger = logging.getLogger("django_cogworker.jobs")


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
        self._hand = hand
        self._desk = desk
        self._runner = runner
        self._solitude = solitude
        self.handling = Handling(
            store=store, desk=desk, death=death, may_start=may_start, errand=hand.errand
        )

    def loop(self, place: int) -> None:
        """The body of the thread of that place."""
        try:
            while (unit := self._hand.take(place, surroundings.close_aged)) is not None:
                try:
                    # What a job's signals and death hooks leave in context variables goes with this copy.
                    copy_context().run(self._process, unit)
                except BaseException as error:
                    logger.critical("A processor failed at its own work.", exc_info=True)
                    self.handling.fault(unit, error)
                finally:
                    self._hand.done(place, unit)
        finally:
            surroundings.thread_ends()

    def _process(self, unit: Unit) -> None:
        if not self.handling.may_start(unit):
            return
        try:
            turn = self.handling.read(unit)
        except Unreadable as error:
            self.handling.unreadable(unit, error)
            return
        if not runs_alone(turn.payload):
            self._start(turn)
            return
        with self._solitude.alone() as away:
            if away:
                self._desk.settle(unit, settlement.postponed(unit, away))
                return
            logger.warning(
                "%s %s runs alone: its worker died %d times while it was running.",
                turn.definition.name,
                turn.jid,
                turn.payload["orphanings"],
                extra=turn.extra,
            )
            self._start(turn)

    def _start(self, turn: Turn) -> None:
        if not self.handling.is_admitted(turn):
            return
        self.handling.begins(turn)
        try:
            surroundings.before_job()
            run = self._runner.run
            turn.result = copy_context().run(run, turn.definition, turn.payload, turn.failed)
        except BaseException as error:  # also exits and interrupts: the job's, not the worker's
            turn.problem = error
        turn.ends()
        surroundings.tidy_connections(turn.jid)
        self.handling.ended(turn)
