"""The conversation with Redis about jobs: one `exchange` after the other.

A call tells what the `ledger` has to tell and asks for jobs for one room. With the reply the ends are
confirmed, what came is held and offered, and the pace and the drained worker are seen. A call that
failed is made again (`unanswered`). A reply may also say that others took this worker for dead: then
nothing of what was held counts any more, and it goes on under a new identity.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import redis

from django_cogworker.features.asking import Notes
from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.store import Store
from django_cogworker.store.values import ExchangeReply, ExchangeRequest
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.fetch.corridor import Corridor
from django_cogworker.worker.fetch.gate import Gate
from django_cogworker.worker.fetch.ledger import Ledger
from django_cogworker.worker.fetch.room import Room
from django_cogworker.worker.fetch.rooms import Rooms
from django_cogworker.worker.fetch.unanswered import Unanswered
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.outage import Outage, Pause

logger = logging.getLogger("django_cogworker")


class Conversation:
    """The one of a fetcher, in its thread."""

    def __init__(
        self,
        *,
        store: Store,
        membership: Membership,
        outage: Outage,
        due_in: Callable[[int], None],
        bulletin: Bulletin,
        rooms: Rooms,
        gate: Gate,
        ledger: Ledger,
        corridor: Corridor,
    ) -> None:
        self._store = store
        self._membership = membership
        self._outage = outage
        self._due_in = due_in
        self._bulletin = bulletin
        self._rooms = rooms
        self._gate = gate
        self._ledger = ledger
        self._corridor = corridor
        self._notes = Notes()
        self._pause = Pause()
        self._unanswered = Unanswered()
        #: Set while the worker has nothing at all to do.
        self.drained = threading.Event()

    @property
    def is_certain(self) -> bool:
        """Whether we know all that Redis granted us; not after a call whose reply was lost."""
        return not self._unanswered.asked

    def exchange(self, room: Room, wanted: int) -> None:
        """Tell what there is to tell, and ask for so many jobs for the room."""
        looks = wanted > 0 or room.token
        request = self._request(room, wanted, looks)
        begun = time.monotonic()
        try:
            reply = self._store.exchange(request)
        except (redis.RedisError, OSError) as error:
            self._outage.failed("The exchange of jobs with Redis", error)
            self._rooms.look()
            self._unanswered.lost(request)
            time.sleep(self._pause.seconds())
            return
        room.rate.round_trip(time.monotonic() - begun)
        if reply.buried:
            self._start_over(request.identity)
            return
        self._bulletin.came(reply.bulletin)
        verdicts = self._unanswered.verdicts(request, reply)
        self._ledger.confirmed(request, verdicts, stopping=not self._gate.is_open)
        for each in self._rooms:
            each.measure()
        if looks:
            room.token = False
            # Fewer than wanted means that nothing is left: from here on the listener waits. What came may be
            # what an earlier call for another room was granted, and then nobody has looked here.
            repeated = self._unanswered.asked > 0 and len(self._rooms) > 1
            room.look = wanted > 0 and (repeated or len(reply.jobs) >= wanted)
        self._take_jobs(request, reply)
        self._hear_errors(reply)
        self._due_in(reply.due_ms)
        self._note_drained(room, reply, wanted)

    def _request(self, room: Room, wanted: int, looks: bool) -> ExchangeRequest:
        ledger, unanswered = self._ledger, self._unanswered
        acknowledged = ledger.to_acknowledge(unanswered.repeating)
        # With no queue to take from, a wish brings only what earlier calls were granted.
        learns = unanswered.asked > 0 and not looks
        return ExchangeRequest(
            identity=self._membership.identity,
            first_ticket=unanswered.first_ticket,
            wanted=unanswered.asked if learns else wanted,
            queues=room.ordering.next() if looks else (),
            acknowledged=acknowledged,
            settlements=ledger.to_settle(),
            notes=(
                self._notes.digest([ledger.held[each].notes for each in acknowledged])
                if self._notes
                else ()
            ),
        )

    def _take_jobs(self, request: ExchangeRequest, reply: ExchangeReply) -> None:
        identity, held, enter = self._membership.identity, self._ledger.held, self._rooms.enter
        offers: dict[Room, list[Unit]] = {}
        for taken in reply.jobs:
            if taken.ticket in held:
                continue  # a repeat of what is here already
            unit = Unit(taken.ticket, identity, taken.queue, taken.payload, taken.fetched_ms)
            held[taken.ticket] = unit
            offers.setdefault(enter(unit), []).append(unit)
        # Only now, and before anybody runs them: a suspect looks from its own thread whether it is alone.
        self._unanswered.known(request, reply)
        for room, units in offers.items():
            if self._gate.may_fetch():
                room.hand.offer(units)
                continue
            # Asked for before fetching ended: a job that is to run alone must not get company now.
            for unit in reversed(units):
                self._ledger.give_back(unit)

    def _hear_errors(self, reply: ExchangeReply) -> None:
        """Errors of single keys. Those that say "not now" are an outage, the others are told now
        and then.
        """
        away = [each for each in reply.errors if _passing(each)]
        if away:
            self._outage.failed("Fetching", redis.ResponseError(away[0].partition(": ")[2]))
            self._rooms.look()
            time.sleep(self._pause.seconds())
            return
        self._pause.reset()
        self._outage.over(wrote=bool(reply.jobs))
        for each in reply.errors:
            self._outage.failed("Fetching", redis.ResponseError(each))

    def _note_drained(self, room: Room, reply: ExchangeReply, wanted: int) -> None:
        if reply.jobs:
            self.drained.clear()
        if self._ledger.held or reply.due_ms == 0:
            self._rooms.not_empty()
        elif wanted > 0:
            room.empty = True
            if self._rooms.are_empty:
                self.drained.set()

    def _start_over(self, buried: str) -> None:
        """Others took this worker for dead and have its jobs now. Go on under a new identity."""
        identity = self._membership.renew(buried)
        logger.error(
            "This worker (%s) was taken for dead and its %d jobs were given to others; it goes on as %s.",
            buried,
            len(self._ledger.held),
            identity,
        )
        for room in self._rooms:
            room.unfinished -= len(room.hand.withdraw())
        self._corridor.start_over()
        self._unanswered.start_over()
        self._ledger.start_over()
        self._rooms.look()


def _passing(error: str) -> bool:
    words = error.partition(": ")[2]
    return is_unavailable(redis.ResponseError(words))
