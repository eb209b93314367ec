"""A room: where the jobs of some queues run, and all that the fetcher knows of it.

A worker has one room with its processors and, where it has async queues, one with the slots of its event
loop. Each has its own queues, hand, pace and listener, so that one which is full does not keep the other
from getting jobs. Tickets come from one sequence for both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from django_cogworker.parsers import QueueWeight
from django_cogworker.worker.fetch.ordering import Ordering
from django_cogworker.worker.fetch.rate import Rate
from django_cogworker.worker.hand import Hand, Unit

#: The most that one call fetches: a script can only handle so many values at once.
MOST_FETCHED = 1000
#: No job waits longer than this for a processor; then it is given back (seconds).
HOLD = 0.05


class Room:
    """One of a worker's. The fetcher's thread alone changes it."""

    def __init__(
        self,
        name: str,
        hand: Hand,
        capacity: int,
        queues: Sequence[QueueWeight],
        order: str,
        *,
        ahead: bool = True,
    ) -> None:
        """`capacity`: how many jobs run in it at the same time; `name` is that of its listener;
        `ahead`: whether more may be fetched than that, by the pace.
        """
        self.name = name
        self.hand = hand
        self.capacity = capacity
        self.ordering = Ordering(queues, order)
        self.rate = Rate()
        self._ahead = ahead
        #: Fetched, and nobody here is done with it.
        self.unfinished = 0
        #: Ended since the pace was last measured.
        self.ended = 0
        #: A token of its queues is in our hands; there may be something to fetch.
        self.token = self.look = False
        #: The last look brought nothing, and nothing is held since.
        self.empty = False

    @property
    def queues(self) -> list[str]:
        return self.ordering.names

    def wanted(self) -> int:
        """How many jobs it has room for now."""
        if not self.ordering.names:
            return 0
        allowance = self.rate.allowance() if self._ahead else 0
        room = self.capacity + allowance - self.unfinished
        return max(0, min(room, MOST_FETCHED))

    @property
    def deadline(self) -> float | None:
        """Until when (monotonic) the first that nobody has taken may wait, or `None`."""
        oldest = self.hand.oldest_offer()
        return None if oldest is None else oldest + HOLD

    def turn_back(self, *, may_fetch: bool) -> list[Unit]:
        """What nobody has taken, where one of it waits too long or fetching has ended.

        All of it at once: what came after a job that waits too long would wait no less, and given
        back on its own it would overtake that one.
        """
        if may_fetch:
            oldest = self.hand.oldest_offer()
            if oldest is None or time.monotonic() - oldest < HOLD:
                return []
            self.rate.misjudged()
        return self.hand.withdraw()

    def leaves(self) -> None:
        """One of its jobs has come to an end."""
        self.unfinished -= 1
        self.ended += 1

    def measure(self) -> None:
        """Tell the pace how many have ended."""
        self.rate.finished(self.ended)
        self.ended = 0
