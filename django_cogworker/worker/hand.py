"""The hand: jobs between the fetcher and those who run them, the processors or the loop.

The fetcher offers jobs, a processor takes one, and what nobody took in time can be withdrawn.
Taking and withdrawing compete for the same dict entry, and whoever pops it has the job: no lock, no
job run by one and given back by the other.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Any

from django_cogworker.worker.inbox import Inbox


@dataclasses.dataclass(slots=True, eq=False)
class Unit:
    """A fetched job in this worker's memory."""

    ticket: int
    identity: str
    queue: str
    payload: bytes
    fetched_ms: int
    offered: float = 0.0
    #: Whether its start was written down in Redis; the mark goes when the job is settled.
    marked: bool = False
    #: The stop has put it back or buried it: whoever has not begun with it must not any more.
    given_up: bool = False
    #: Nobody waits for its end any more: if it still runs when the worker ends, it has failed with this.
    overdue: BaseException | None = None
    #: What features noted of its run, for the step that acknowledges it.
    notes: tuple[Any, ...] = ()
    #: The room that it counts in; the fetcher's alone.
    room: Any = None
    #: The decoded job once it runs; for stacks, pages and the requeue at a stop.
    job: dict[str, object] | None = None


class Hand:
    """Holds what was fetched and not finished."""

    def __init__(
        self,
        note: Callable[[int, int], None] = lambda place, ticket: None,
        ended: Callable[[], None] = lambda: None,
        offered: Callable[[], None] | None = None,
    ) -> None:
        """`note(place, ticket)` writes down what each processor runs (ticket 0: nothing); `ended`
        hears of each job that a processor is done with; `offered` that there is something to take.
        """
        self._ended = ended
        self._offered = offered
        self._note = note
        self._inbox = Inbox()
        self.untaken: dict[int, Unit] = {}
        self.running: dict[int, Unit] = {}

    def offer(self, units: Iterable[Unit]) -> None:
        now = time.monotonic()
        offered = list(units)
        for unit in offered:
            unit.offered = now
            self.untaken[unit.ticket] = unit
        self._inbox.put(offered)
        if self._offered is not None:
            self._offered()

    def errand(self, work: Callable[[], None]) -> None:
        """Have the next free processor do `work`, which must not raise."""
        self._inbox.put([work])

    def take(self, place: int, idle: Callable[[], float | None] = lambda: None) -> Unit | None:
        """The next job for the processor of that place, as soon as there is one; `None` when the
        worker ends. Errands are done on the way. `idle` is called before each wait, and again after
        the seconds that it returns.
        """
        while True:
            unit = self._inbox.get(idle)
            if unit is None:
                return None
            if not isinstance(unit, Unit):
                unit()
                continue
            if self._take(place, unit):
                return unit

    def take_waiting(self, place: int) -> Unit | None:
        """The next job for that place, if one waits."""
        while True:
            try:
                unit = self._inbox.get_nowait()
            except IndexError:
                return None
            if isinstance(unit, Unit) and self._take(place, unit):
                return unit

    def _take(self, place: int, unit: Unit) -> bool:
        self.running[unit.ticket] = unit
        if self.untaken.pop(unit.ticket, None) is not None:
            self._note(place, unit.ticket)
            return True
        del self.running[unit.ticket]  # withdrawn meanwhile
        return False

    def passed_on(self, place: int, unit: Unit) -> None:
        """The job is not to run here: whoever took it has passed it on, unrun."""
        self._note(place, 0)
        self.running.pop(unit.ticket, None)

    def done(self, place: int, unit: Unit) -> None:
        """A processor has finished with the job."""
        self.passed_on(place, unit)
        self._ended()

    def withdraw(self) -> list[Unit]:
        """Take back what no processor has taken, newest first."""
        taken_back = [
            unit
            for unit in list(self.untaken.values())
            if self.untaken.pop(unit.ticket, None) is not None
        ]
        taken_back.reverse()
        return taken_back

    def oldest_offer(self) -> float | None:
        """When the job that waits longest was offered (monotonic), if any waits."""
        try:
            return next(iter(self.untaken.values())).offered
        except (StopIteration, RuntimeError):  # RuntimeError: a processor took one just now
            return None

    def close(self, processors: int) -> None:
        """Let so many waiting processors end."""
        self._inbox.put([None] * processors)
