"""The loop: one thread with an event loop, whose slots run the coroutines of async queues.

Per job: take it from the hand → decode → find its class → run its coroutine as a task → hand its settlement to the
fetcher. It is the processors' course with other means; what the two share is in `handling`. No synchronous code of
the project runs on the loop: `helpers` have it. A job that is no coroutine, or that is to run alone, is passed on
to the processors.

A job that blocks the loop blocks all of them. The loop ticks once a second; a late tick is logged, and while none
comes the worker's health shows a loop that is stuck.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from functools import partial
from typing import Any, Protocol

from asgiref.sync import AsyncToSync

from django_cogworker.worker.hand import Hand, Unit
from django_cogworker.worker.handling import Desk, Handling, Turn, Unreadable
from django_cogworker.worker.health import Health
from django_cogworker.worker.helpers import Caller, Helpers, SyncThread, caller
from django_cogworker.worker.loop_runner import LoopRunner
from django_cogworker.worker.orphans import runs_alone
from django_cogworker.worker.threads import start_thread

logger = logging.getLogger("django_cogworker.jobs")

#: Seconds between two ticks.
TICK = 1.0
#: A tick that is later than this is told (seconds).
LATE = 1.0
#: Without a tick for so long after its time, the loop stands still (seconds).
STILL = 5.0


class LoopDesk(Desk, Protocol):
    def pass_on(self, unit: Unit) -> None: ...


class _Run(Caller):
    """One job on the loop."""

    __slots__ = ("interrupted", "name", "task")

    def __init__(self) -> None:
        super().__init__()
        self.name = ""
        #: Runs the job's own code now.
        self.task: asyncio.Task[Any] | None = None
        #: The stop has cancelled it.
        self.interrupted = False

    def was_interrupted(self) -> bool:
        return self.interrupted

    def hold(self, task: asyncio.Task[Any] | None) -> None:
        self.task = task


class Loop:
    """The one of a worker."""

    def __init__(
        self,
        *,
        hand: Hand,
        slots: int,
        desk: LoopDesk,
        handling: Handling,
        runner: LoopRunner,
        health: Health,
    ) -> None:
        self._hand = hand
        self._desk = desk
        self._handling = handling
        self._runner = runner
        self._health = health
        self._turned = health.loop("loop")
        self._helpers = Helpers(slots)
        self._sync = SyncThread()
        self._free = list(range(slots - 1, -1, -1))
        self._runs: dict[int, _Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._passed_on: set[str] = set()
        #: Names of what ran since the last tick.
        self._lately: set[str] = set()
        self._ended = False
        #: Each job gets a copy: what it leaves in context variables is gone with it.
        self._context = contextvars.Context()
        self._events = asyncio.new_event_loop()
        # What jobs call by `sync_to_async` runs there, and not in a thread that keeps the process from ending.
        executors: dict[Any, Any] = AsyncToSync.loop_thread_executors
        executors[self._events] = self._sync
        self._due = 0.0

    # From any thread.

    def start(self) -> None:
        start_thread("loop", self.loop)

    def wake(self) -> None:
        """There is something in the hand."""
        self._events.call_soon_threadsafe(self._fill)

    @property
    def stands_still(self) -> bool:
        """Whether something blocks it for longer than a busy machine would."""
        return time.monotonic() - self._due > STILL

    def interrupt(self, patience: float) -> None:
        """Cancel what runs, and wait for it to end, `patience` seconds at the most."""
        deadline = time.monotonic() + patience
        done = threading.Event()

        def cancel() -> None:
            for run in self._runs.values():
                run.interrupted = True
                if run.task is not None:
                    run.task.cancel("The worker stops.")
            done.set()

        if not self._hand.running:
            return
        self._events.call_soon_threadsafe(cancel)
        done.wait(patience)  # in vain where a job blocks the loop
        nap = threading.Event()
        while time.monotonic() < deadline and any(each.task for each in list(self._runs.values())):
            nap.wait(0.01)

    def end(self) -> None:
        """End the thread."""
        self._ended = True
        self._events.call_soon_threadsafe(self._events.stop)
        self._sync.end()
        self._health.ended("loop")

    # The thread.

    def loop(self) -> None:
        """The thread's body."""
        self._due = time.monotonic()
        tick = self._events.call_soon(self._tick)
        try:
            while not self._ended:
                try:
                    self._events.run_forever()
                except BaseException:  # an exit that a job's own task raised
                    logger.critical("A task on the loop tried to end it.", exc_info=True)
        finally:
            tick.cancel()

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._due > LATE:
            names = sorted(self._lately.union(each.name for each in self._runs.values()) - {""})
            logger.warning(
                "The event loop stood still for %.1f s: a job on it calls something that blocks. "
                "Running: %s.",
                now - self._due,
                ", ".join(names) or "none",
            )
        self._lately.clear()
        self._due = now + TICK
        if not self._ended:
            self._turned()
            self._events.call_later(TICK, self._tick)

    def _fill(self) -> None:
        while self._free:
            place = self._free[-1]
            unit = self._hand.take_waiting(place)
            if unit is None:
                return
            self._free.pop()
            run = self._runs[place] = _Run()
            context = self._context.copy()
            context.run(caller.set, run)
            task = self._events.create_task(self._attend(place, unit, run), context=context)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attend(self, place: int, unit: Unit, run: _Run) -> None:
        done = True
        try:
            done = await self._process(place, unit, run)
        except BaseException as error:
            logger.critical("The loop failed at its own work.", exc_info=True)
            self._handling.fault(unit, error)
        finally:
            if done:
                self._hand.done(place, unit)
            del self._runs[place]
            self._lately.add(run.name)
            self._free.append(place)
            self._fill()

    async def _process(self, place: int, unit: Unit, run: _Run) -> bool:
        """Whether we are done with the job; not where it was passed on, or left to the stop."""
        handling = self._handling
        if not handling.may_start(unit):
            return True
        try:
            turn = handling.read(unit)
        except Unreadable as error:
            await self._helpers.run(partial(handling.unreadable, unit, error))
            return True
        if not turn.definition.is_async or runs_alone(turn.payload):
            self._pass_on(place, turn)
            return False
        run.name = turn.definition.name
        if not await self._is_admitted(turn):
            return True
        if handling.may_block_when_it_begins(turn):
            await self._helpers.run(partial(handling.begins, turn))
        else:
            handling.begins(turn)
        if run.was_interrupted():
            return unit.given_up
        try:
            turn.result = await self._runner.run_here(turn, self._helpers, run.hold)
        except BaseException as error:  # also exits: the job's, not the loop's
            if run.was_interrupted() and isinstance(error, asyncio.CancelledError):
                return unit.given_up
            turn.problem = error
        turn.ends()
        self._sync.tidy(turn.jid, run, [each for each in self._runs.values() if each is not run])
        if handling.may_block_at_end(turn):
            await self._helpers.run(partial(handling.ended, turn))
        else:
            handling.ended(turn)
        return True

    async def _is_admitted(self, turn: Turn) -> bool:
        if not self._handling.may_block_at_start(turn):
            return self._handling.is_admitted(turn)
        admitted: bool = await self._helpers.run(partial(self._handling.is_admitted, turn))
        return admitted

    def _pass_on(self, place: int, turn: Turn) -> None:
        unit, name = turn.unit, turn.definition.name
        if not turn.definition.is_async and name not in self._passed_on:
            self._passed_on.add(name)
            logger.warning(
                "%s is no coroutine, but lay on the async queue %s: a processor runs it. Let it go to another "
                "queue.",
                name,
                unit.queue,
                extra=turn.extra,
            )
        unit.job = None
        self._hand.passed_on(place, unit)
        self._desk.pass_on(unit)
