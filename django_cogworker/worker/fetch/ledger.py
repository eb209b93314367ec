"""The ledger: what Redis believes to be in progress here, and which ends it has not confirmed yet.

A job is held from the reply that brought it. Its end is known here first: it counts once, whoever
tells it (a processor, a stop over its head, a look for strays), and a later word is ignored. Then it
waits for the next exchange, as a success that is only acknowledged or as a settlement that says where
the job goes. When that is confirmed, and not before, the ticket is forgotten. A settlement that Redis
could not carry out waits for a while and is told again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import redis

from django_cogworker.store.values import ExchangeRequest, Settlement
from django_cogworker.worker import settlement as settlements
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.outage import Outage

logger = logging.getLogger("django_cogworker")

#: The most that one call settles.
MOST_SETTLED = 500
#: How long a settlement waits that Redis could not carry out (a key of the wrong type) before it is tried again.
LATER = 5.0
#: The same while the worker stops.
LATER_AT_STOP = 0.5


class Ledger:
    """The one of a fetcher, whose thread alone changes it."""

    def __init__(self, membership: Membership, outage: Outage) -> None:
        self._membership = membership
        self._outage = outage
        #: By ticket.
        self.held: dict[int, Unit] = {}
        #: Tickets in `held` whose end is known here and not yet confirmed by Redis.
        self.ended: set[int] = set()
        #: Tickets of jobs that succeeded, with nothing to be written about them.
        self.acknowledged: list[int] = []
        self._settlements: list[Settlement] = []
        self._later: list[Settlement] = []
        self._later_at = 0.0

    def is_running(self, unit: Unit) -> bool:
        """Whether this very job is held and has not ended."""
        return self.held.get(unit.ticket) is unit and unit.ticket not in self.ended

    def ends(self, unit: Unit) -> bool:
        """The job ended. Whether that counts: not after the worker gave it up, nor after a burial."""
        if self.held.get(unit.ticket) is unit and unit.ticket not in self.ended:
            self.ended.add(unit.ticket)
            unit.room.leaves()
            return True
        if unit.identity != self._membership.identity:
            unit.room.leaves()  # its processor is free again
        logger.warning(
            "A job on queue %s ended after this worker had given it up; its end changes nothing.",
            unit.queue,
        )
        return False

    def settle(self, unit: Unit, settlement: Settlement) -> None:
        """The job ended, and goes where `settlement` says."""
        if self.ends(unit):
            self._settlements.append(settlement)
        elif settlement.done is not None:
            settlement.verdict = 0
            settlement.done.set()

    def give_back(self, unit: Unit) -> None:
        """Nobody here has begun with the job: it goes back to its queue."""
        self.settle(unit, settlements.given_back(unit))

    # What the calls tell.

    @property
    def has_ends(self) -> bool:
        """Whether there is something to tell now."""
        return bool(self.acknowledged or self._settlements)

    def to_acknowledge(self, repeating: int) -> list[int]:
        """The successes for the next call: just `repeating`, where it repeats one."""
        return self.acknowledged[: repeating or MOST_SETTLED]

    def to_settle(self) -> list[Settlement]:
        """The settlements for the next call."""
        return self._settlements[:MOST_SETTLED]

    def confirmed(
        self, request: ExchangeRequest, verdicts: Sequence[int | str], *, stopping: bool
    ) -> None:
        """Redis has done what the call told; `verdicts` are on its settlements."""
        del self.acknowledged[: len(request.acknowledged)]
        del self._settlements[: len(request.settlements)]
        for ticket in request.acknowledged:
            self._forget(ticket)
        for settlement, verdict in zip(request.settlements, verdicts, strict=True):
            if isinstance(verdict, str):
                self._put_off(settlement, verdict, LATER_AT_STOP if stopping else LATER)
            else:
                self._settled(settlement, verdict)

    def _settled(self, settlement: Settlement, verdict: int) -> None:
        if verdict == 0:
            logger.warning("A job was settled that Redis no longer knew as ours.")
        self._forget(settlement.ticket)
        put_off = isinstance(settlement.verdict, str)
        settlement.verdict = verdict
        if settlement.done is not None:
            settlement.done.set()
        if put_off and verdict == 1 and settlement.late is not None:
            settlement.late()

    def _forget(self, ticket: int) -> None:
        self.held.pop(ticket, None)
        self.ended.discard(ticket)

    # What has to wait.

    def _put_off(self, settlement: Settlement, problem: str, seconds: float) -> None:
        """Redis could not settle this job now: it is tried again later, and nobody waits for it."""
        self._outage.failed("Settling a job", redis.ResponseError(problem))
        self._later.append(settlement)
        self._later_at = time.monotonic() + seconds
        settlement.verdict = problem
        if settlement.done is not None:
            settlement.done.set()

    @property
    def next_try(self) -> float | None:
        """When what was put off is due (monotonic), or `None` where nothing was."""
        return self._later_at if self._later else None

    def retry_later_ones(self) -> None:
        """Tell again what was put off, if it is time."""
        if self._later and time.monotonic() >= self._later_at:
            self._settlements += self._later
            self._later = []

    def start_over(self) -> None:
        """All that was held is with others now."""
        for settlement in [*self._settlements, *self._later]:
            settlement.verdict = 0
            if settlement.done is not None:
                settlement.done.set()
        # The processors that still run such jobs are not free: they count as unfinished until they are done.
        self.held, self.ended = {}, set()
        self.acknowledged, self._settlements, self._later = [], [], []
