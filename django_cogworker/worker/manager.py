"""The manager: the threads that run jobs, and how they come to an end.

Stopping: fetch no more and give back what nobody has taken → wait for the running jobs, up to the
time-out → put those that still run back at the front of their queues, without using up an attempt
(an at-most-once job is buried: it has started) → settle, and wait a little for Redis to confirm it.
Threads that still run are left behind; the process ends. Coroutines are cancelled before they are put back, and
have a moment to end in good order.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django_cogworker.conf import Config
from django_cogworker.exceptions import JobOrphanedError
from django_cogworker.features.asking import Effects
from django_cogworker.features.base import Run
from django_cogworker.jobs import registry
from django_cogworker.parsers import QueueWeight
from django_cogworker.signals import announce, job_failed
from django_cogworker.store.store import Store
from django_cogworker.store.values import Settlement
from django_cogworker.worker import settlement as settlements
from django_cogworker.worker.admission import Admission, turned_away
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.chain import build_server_chain
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.fetch.fetcher import Fetcher
from django_cogworker.worker.fetch.room import Room
from django_cogworker.worker.hand import Hand, Unit
from django_cogworker.worker.health import Health
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.loop import Loop
from django_cogworker.worker.loop_runner import LoopRunner
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.processor import Processor
from django_cogworker.worker.retries import Decision, decide
from django_cogworker.worker.runner import Runner
from django_cogworker.worker.solitude import Solitude
from django_cogworker.worker.started import StartedTickets
from django_cogworker.worker.threads import start_thread

logger = logging.getLogger("django_cogworker")

#: How long a stop waits for Redis to confirm the last settlements (seconds).
CONFIRM = 5.0
#: How long cancelled coroutines may take to end (seconds).
CANCEL = 1.0


class Manager:
    """One fetcher, N processors, and the loop where there are async queues."""

    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        membership: Membership,
        outage: Outage,
        due_in: Callable[[int], None],
        death: DeathHooks,
        may_start: Callable[[], bool],
        health: Health,
        bulletin: Bulletin,
        job_ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._config = config
        slots = config.async_concurrency if config.async_queues else 0
        self.started = StartedTickets(config.concurrency + slots)
        self.hand = Hand(self.started.note, job_ended)
        order = config.queue_order
        rooms = [Room("listener", self.hand, config.concurrency, config.processor_queues, order)]
        if slots:
            loop_hand = Hand(self._note_slot, job_ended, self._wake_loop)
            queues = [QueueWeight(each) for each in config.async_queues]
            # Coroutines that start together end together, so the pace of a moment says nothing of the next.
            rooms.append(Room("loop-listener", loop_hand, slots, queues, order, ahead=False))
        self._hands = [each.hand for each in rooms]
        self.fetcher = Fetcher(
            store=store,
            rooms=rooms,
            membership=membership,
            outage=outage,
            due_in=due_in,
            health=health,
            bulletin=bulletin,
        )
        self._stopping = False
        chain = build_server_chain(config)
        self._processor = Processor(
            store=store,
            hand=self.hand,
            desk=self.fetcher,
            runner=Runner(chain, lambda: self._stopping),
            death=death,
            solitude=Solitude(
                self.hand, self.fetcher.hold_back, lambda: self._stopping, self._hands[1:]
            ),
            may_start=lambda: not self._stopping and may_start(),
        )
        self._loop: Loop | None = None
        if slots:
            self._loop = Loop(
                hand=self._hands[1],
                slots=slots,
                desk=self.fetcher,
                handling=self._processor.handling,
                runner=LoopRunner(chain, lambda: self._stopping),
                health=health,
            )
        self._death = death
        self._requeued, self._settled = Effects("requeued"), Effects("settled")
        self._admission = Admission()
        self._buried: list[tuple[Settlement, dict[str, Any], BaseException]] = []
        self._threads: list[threading.Thread] = []
        self._fetcher_thread: threading.Thread | None = None

    def start(self, *, quiet: bool = False) -> None:
        """Start all threads; with `quiet` no job is fetched before `resume`."""
        self._threads = [
            start_thread(f"processor-{place + 1}", partial(self._processor.loop, place))
            for place in range(self._config.concurrency)
        ]
        if self._loop is not None:
            self._loop.start()
        for name, listener in self.fetcher.listeners.items():
            start_thread(name, listener.loop)
        self._fetcher_thread = start_thread("fetcher", self.fetcher.loop)
        if not quiet:
            self.fetcher.open()

    @property
    def busy(self) -> int:
        """How many jobs run now."""
        return sum(len(each.running) for each in self._hands)

    @property
    def async_busy(self) -> int:
        """How many of them run on the event loop."""
        return sum(len(each.running) for each in self._hands[1:])

    @property
    def awaited(self) -> int:
        """How many running jobs are to be waited for."""
        return sum(
            unit.overdue is None
            for hand in self._hands
            if not self._is_held_up(hand)
            for unit in list(hand.running.values())
        )

    def _is_held_up(self, hand: Hand) -> bool:
        """Whether nothing in there comes to an end any more: a job that was given up has the loop to itself."""
        if self._loop is None or hand is self.hand or not self._loop.stands_still:
            return False
        return any(unit.overdue is not None for unit in list(hand.running.values()))

    @property
    def may_end(self) -> bool:
        """Whether nothing runs but what nobody waits for any more."""
        untaken = any(each.untaken for each in self._hands)
        return not self.awaited and not untaken and self.fetcher.is_certain

    def give_up(self, payload: dict[str, Any], error: BaseException) -> None:
        """Do not wait for the running job with this payload."""
        for unit in self._running():
            if unit.job is payload:
                unit.overdue = error

    def _running(self) -> list[Unit]:
        return [unit for hand in self._hands for unit in list(hand.running.values())]

    def _note_slot(self, place: int, ticket: int) -> None:
        self.started.note(self._config.concurrency + place, ticket)

    def _wake_loop(self) -> None:
        if self._loop is not None:
            self._loop.wake()

    def quiet(self) -> None:
        self.fetcher.close()

    def resume(self) -> None:
        self.fetcher.open()

    def stop(self, at_once: Callable[[], bool]) -> None:
        """Bring everything to its place and end the threads. `at_once` is asked whether to wait no
        longer.
        """
        self._stopping = True
        self.fetcher.close()
        deadline = time.monotonic() + self._config.shutdown_timeout
        if self.awaited:
            logger.info(
                "Waiting up to %.0f s for %d running jobs.",
                self._config.shutdown_timeout,
                self.awaited,
            )
        nap = threading.Event()
        while self.awaited and time.monotonic() < deadline and not at_once():
            nap.wait(0.02)
        if self._loop is not None:
            self._loop.interrupt(CANCEL)
        put_back = self._abandon_running()
        confirmed_by = time.monotonic() + CONFIRM
        while (self.fetcher.unsettled or not self.fetcher.is_certain) and (
            time.monotonic() < confirmed_by
        ):
            nap.wait(0.01)
        self._mourn()
        self.hand.close(len(self._threads))
        self.fetcher.end()
        if self._fetcher_thread is not None:
            self._fetcher_thread.join(CONFIRM)
        if self._loop is not None:
            self._loop.end()
        if put_back:
            logger.warning(
                "%d jobs did not end in time and were put back on their queues.", put_back
            )
        if self.fetcher.unsettled:
            logger.error(
                "Redis did not confirm the end of %d jobs; they stay in progress until another worker "
                "recovers them.",
                self.fetcher.unsettled,
            )
        else:
            self.started.remove()

    def _abandon_running(self) -> int:
        """Settle the jobs whose processors still run them; newest first, so that the oldest runs
        first again.
        """
        running = sorted(self._running(), key=lambda unit: unit.ticket, reverse=True)
        for unit in running:
            unit.given_up = True  # before anything else is read of it: see `Processor._start`
            self.fetcher.settle(unit, self._abandoned(unit))
        return sum(unit.overdue is None for unit in running)

    def _mourn(self) -> None:
        """The hooks of the at-most-once jobs that the stop buried."""
        for settlement, record, error in self._buried:
            if settlement.verdict == 1:
                self._death.buried(registry.lookup(record["class"]), record, error)

    def _abandoned(self, unit: Unit) -> Settlement:
        job = unit.job
        if job is not None and unit.overdue is not None:
            return self._excused(unit, job, unit.overdue) or self._failed(unit, job, unit.overdue)
        if job is not None and unit.marked:
            error = JobOrphanedError(
                "The worker stopped while this at-most-once job was running; it is not run again."
            )
            return self._failed(unit, job, error, Decision("dead"))
        settlement, count = settlements.interrupted_by_stop(unit)
        settlement.effects = () if job is None else self._requeued.of(job)
        jid = None if job is None else job.get("jid")
        name = "A job" if job is None else job.get("class")
        level = logging.WARNING if count >= settlements.MANY_INTERRUPTIONS else logging.INFO
        logger.log(
            level,
            "%s %s was interrupted by the stop (%d times so far); it goes back to queue %s.%s",
            name,
            jid,
            count,
            unit.queue,
            " It takes longer than the time between deploys." if level == logging.WARNING else "",
            extra={"jid": jid, "job_class": name},
        )
        return settlement

    def _excused(self, unit: Unit, job: dict[str, Any], error: BaseException) -> Settlement | None:
        """The job still runs, but a feature says that its end is no failure."""
        refused = self._admission.excused(job, error)
        if refused is None:
            return None
        settlement = turned_away(unit, job, refused)
        run = Run(job, refused.outcome, error=error, delay=refused.delay or 0.0)
        settlement.effects = self._settled.of_run(run)
        return settlement

    def _failed(
        self,
        unit: Unit,
        job: dict[str, Any],
        error: BaseException,
        decision: Decision | None = None,
    ) -> Settlement:
        """The job counts as failed, though it still runs."""
        definition = registry.lookup(job["class"])
        overdue = decision is None
        chosen = decide(definition, job, error) if decision is None else decision
        run = Run(job, chosen.outcome, error=error, delay=chosen.delay)
        settlement, chosen, record = settlements.FailureSettler(self._store.keys).settle(
            unit, dict(job), error, chosen, self._settled.of_run(run)
        )
        if chosen.outcome in ("dead", "killed"):
            self._buried.append((settlement, record, error))
        if overdue:
            extra = {"jid": job["jid"], "job_class": job["class"]}
            logger.error(
                "%s %s is left behind, still running; it counts as failed (%s).",
                job["class"],
                job["jid"],
                chosen.outcome,
                extra=extra,
            )
            target = None if definition is None else definition.target
            announce(
                job_failed,
                target,
                jid=job["jid"],
                payload=record,
                error=error,
                outcome=chosen.outcome,
            )
        return settlement
