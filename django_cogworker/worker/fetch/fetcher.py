"""The fetcher: one thread that settles finished jobs and fetches new ones, in as few calls as can
be.

Its life is one loop: gather what happened (jobs finished, a token came, a processor is free) →
one `exchange` with Redis that settles all of it and asks for as many jobs as there is room for →
offer what came. So the more jobs there are, the more of them share a round trip. When nothing is
to be had, the `listener` waits for a token and the fetcher for the listener.

What it remembers: `held`, every ticket that Redis believes to be in progress here. A ticket
leaves `held` only when an exchange has confirmed its end. A lost reply changes nothing: the same
call is made again, with the same tickets.

Where jobs run are its *rooms*: the processors, and the event loop where the worker has async queues. A
call fetches for one room; those that have nothing to fetch make no call.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import redis

from django_cogworker.features.asking import Notes
from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.store import BLOCK, Store
from django_cogworker.store.values import Effect, ExchangeReply, ExchangeRequest, Settlement
from django_cogworker.worker import settlement as settlements
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.fetch.listener import Listener
from django_cogworker.worker.fetch.room import Room
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.health import Health
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.outage import Outage, Pause

logger = logging.getLogger("django_cogworker")

#: No job waits longer than this for a processor; then it is given back (seconds).
HOLD = 0.05
#: While processors have enough to do, finished jobs wait so long for company (seconds).
COMPANY = 0.002
#: The most that one call settles.
MOST_SETTLED = 500
#: The same for one that was passed on to the processors; meanwhile it keeps its slot of the loop.
PASSED_ON_HOLD = 1.0
#: How long a settlement waits that Redis could not carry out (a key of the wrong type) before it is tried again.
LATER = 5.0

#: The same while the worker stops.
LATER_AT_STOP = 0.5

_LOOK, _WAKE = object(), object()


@dataclasses.dataclass(frozen=True, slots=True)
class _Stray:
    unit: Unit


@dataclasses.dataclass(frozen=True, slots=True)
class _PassedOn:
    unit: Unit


class Fetcher:
    """The conversation of one worker with Redis about jobs."""

    def __init__(
        self,
        *,
        store: Store,
        rooms: Sequence[Room],
        membership: Membership,
        outage: Outage,
        due_in: Callable[[int], None],
        health: Health,
        bulletin: Bulletin,
    ) -> None:
        """`due_in` hears, with each reply, the milliseconds to the next due job (-1: none). The first
        of `rooms` is that of the processors.
        """
        self._store = store
        self._rooms = rooms
        self._main = rooms[0]
        self._room_of = {queue: room for room in rooms for queue in room.queues}
        self._membership = membership
        self._outage = outage
        self._due_in = due_in
        #: One a room, by its name.
        self.listeners = {
            each.name: Listener(
                store, each.queues, outage, partial(self._heard, each), health.loop(each.name)
            )
            for each in rooms
        }
        self._turned = health.loop("fetcher")
        self._notes = Notes()
        self._bulletin = bulletin
        #: How many successes a call whose reply is missing had: they are repeated as they were.
        self._repeating = 0
        self._events: SimpleQueue[Any] = SimpleQueue()
        self._pause = Pause()

        self.held: dict[int, Unit] = {}
        #: Tickets in `held` whose end is known here and not yet confirmed by Redis.
        self._ended_tickets: set[int] = set()
        self._acknowledged: list[int] = []
        self._settlements: list[Settlement] = []
        self._later: list[Settlement] = []
        self._later_at = 0.0
        #: Settlements (by id) of calls that failed: Redis may have carried them out all the same.
        self._perhaps_settled: set[int] = set()
        #: Passed on from one room to the processors, and not yet theirs.
        self._passed_on: list[Unit] = []
        self._next_ticket = 1
        #: How many jobs the failed calls asked for: Redis may have granted them, and we do not know it.
        self._uncertain = 0
        self._open = self._held_back = False
        self._ended = False
        #: Set while the worker has nothing at all to do; a burst worker waits for it.
        self.drained = threading.Event()

    # Asked by processors and the manager, from any thread.

    def finished(self, unit: Unit) -> None:
        """A job succeeded and nothing has to be written about it."""
        self._events.put(unit)

    def settle(self, unit: Unit, settlement: Settlement) -> None:
        """A job goes where `settlement` says: its processor is done with it, or the worker stops. In
        the second case the processor's own late word is ignored.
        """
        self._events.put((unit, settlement))

    def pass_on(self, unit: Unit) -> None:
        """A job that cannot run in its room is for the processors."""
        self._events.put(_PassedOn(unit))

    def open(self) -> None:
        """Fetch jobs from now on."""
        self._open = True
        self._look_now()

    def close(self) -> None:
        """Fetch no more; what no processor has taken yet goes back."""
        self._open = False
        self._events.put(_WAKE)

    def hold_back(self, wish: bool) -> None:
        """While true: fetch nothing, though open, and give back what no processor has taken."""
        self._held_back = wish
        self._events.put(_WAKE if wish else _LOOK)

    @property
    def _may_fetch(self) -> bool:
        return self._open and not self._held_back and self._membership.is_present

    def end(self) -> None:
        """End the loop after a last exchange."""
        self._ended = True
        self._events.put(_WAKE)
        for each in self.listeners.values():
            each.end()

    def give_back_stray(self, unit: Unit) -> None:
        """A job that Redis holds for us and nobody here knew of goes back to its queue."""
        self._events.put(_Stray(unit))

    def is_ended(self, ticket: int) -> bool:
        """Whether the job's end is known here and on its way to Redis."""
        return ticket in self._ended_tickets

    def is_in_hand(self, ticket: int) -> bool:
        """Whether the job is offered to somebody here, or runs."""
        return any(
            ticket in each.hand.untaken or ticket in each.hand.running for each in self._rooms
        )

    @property
    def unsettled(self) -> int:
        """How many jobs Redis still believes to be in progress here, as far as we know."""
        return len(self.held)

    @property
    def is_certain(self) -> bool:
        """Whether we know all that Redis granted us; not after a call whose reply was lost."""
        return not self._uncertain

    def look_again(self) -> None:
        """Ask Redis for jobs once more before counting as drained."""
        self.drained.clear()
        self._look_now()

    def _look_now(self) -> None:
        self._events.put(_LOOK)

    def _heard(self, room: Room, token: bool) -> None:
        self._events.put((room, token))

    # The loop.

    def loop(self) -> None:
        """The thread's body."""
        while not self._ended:
            self._turned()
            self._gather(self._patience())
            self._step()
        self._last_words()

    def _step(self) -> None:
        self._return_untaken()
        self._settle_passed_on()
        self._retry_later_ones()
        settling = bool(self._acknowledged or self._settlements)
        looking = [each for each in self._rooms if self._is_looking(each)]
        if settling and not looking:
            looking = [self._main]
        for room in looking:
            self._exchange(room, self._wanted(room))
        if self._uncertain and not looking:
            self._exchange(self._main, 0)  # learn what lost replies held
        for room in self._rooms:
            if not room.look and self._wanted(room) > 0:
                # Room is left and nothing is to be had: wait for a token.
                self.listeners[room.name].arm()

    def _is_looking(self, room: Room) -> bool:
        # A token in our hands goes back by a look without wishes, or the jobs it stands for wait for nobody.
        return room.token or (room.look and self._wanted(room) > 0)

    def _patience(self) -> float:
        """How long the next wait for an event may last."""
        if self._acknowledged or self._settlements or self._uncertain:
            return 0.0
        patience = float(BLOCK)
        now = time.monotonic()
        for room in self._rooms:
            if self._is_looking(room):
                return 0.0
            oldest = room.hand.oldest_offer()
            if oldest is not None:
                patience = min(patience, max(0.001, oldest + HOLD - now))
        if self._passed_on:
            patience = min(patience, max(0.001, self._passed_on[0].offered + PASSED_ON_HOLD - now))
        if self._later:
            patience = min(patience, max(0.001, self._later_at - now))
        return patience

    def _gather(self, patience: float) -> None:
        events = self._events
        try:
            event = events.get(timeout=patience) if patience > 0 else events.get_nowait()
        except Empty:
            return
        self._note(event)
        if (self._acknowledged or self._settlements) and any(
            each.hand.untaken for each in self._rooms
        ):
            time.sleep(COMPANY)  # the processors have enough to do; more will have finished
        finished = 1
        try:
            while finished < MOST_SETTLED:
                self._note(events.get_nowait())
                finished += 1
        except Empty:
            return

    def _note(self, event: Any) -> None:
        if type(event) is Unit:
            if self._is_ours(event):
                self._acknowledged.append(event.ticket)
        elif event is _LOOK:
            self._look_everywhere()
        elif type(event) is _Stray:
            self._adopt(event.unit)
        elif type(event) is _PassedOn:
            self._receive(event.unit)
        elif event is not _WAKE:
            subject, word = event
            if type(subject) is Room:
                if word:
                    subject.token = True
                else:
                    subject.look = True
            elif self._is_ours(subject):
                self._settlements.append(word)
            elif word.done is not None:
                word.verdict = 0
                word.done.set()

    def _look_everywhere(self) -> None:
        for room in self._rooms:
            room.look = True
            room.empty = False

    def _adopt(self, unit: Unit) -> None:
        if unit.identity == self._membership.identity and unit.ticket not in self.held:
            self._hold(unit)
            self._note((unit, settlements.given_back(unit)))

    def _hold(self, unit: Unit) -> Room:
        """From now on the job counts in its room."""
        self.held[unit.ticket] = unit
        room = unit.room = self._room_of.get(unit.queue, self._main)
        room.unfinished += 1
        return room

    def _receive(self, unit: Unit) -> None:
        """A job is to move to the processors; it does as soon as one is free."""
        if self.held.get(unit.ticket) is not unit or unit.ticket in self._ended_tickets:
            if unit.identity != self._membership.identity:
                unit.room.leaves()  # others have it; nobody here runs it
            return
        unit.offered = time.monotonic()
        self._passed_on.append(unit)

    def _settle_passed_on(self) -> None:
        """Free processors get the jobs that were passed on; what waits too long goes back."""
        while self._passed_on and self._may_fetch:
            if self._main.unfinished >= self._main.capacity:
                break
            unit = self._passed_on.pop(0)
            unit.room.leaves()
            unit.room = self._main
            self._main.unfinished += 1
            self._main.hand.offer([unit])
        if self._passed_on and not self._may_fetch:
            back, self._passed_on = self._passed_on, []
        else:
            late = time.monotonic() - PASSED_ON_HOLD
            back = [each for each in self._passed_on if each.offered <= late]
            del self._passed_on[: len(back)]
        for unit in reversed(back):
            self._note((unit, settlements.given_back(unit)))

    def _is_ours(self, unit: Unit) -> bool:
        """Whether the job's end still counts: not after the worker gave it up, nor after a burial."""
        if self.held.get(unit.ticket) is unit and unit.ticket not in self._ended_tickets:
            self._ended_tickets.add(unit.ticket)
            unit.room.leaves()
            return True
        if unit.identity != self._membership.identity:
            unit.room.leaves()  # its processor is free again
        logger.warning(
            "A job on queue %s ended after this worker had given it up; its end changes nothing.",
            unit.queue,
        )
        return False

    def _wanted(self, room: Room) -> int:
        return room.wanted() if self._may_fetch else 0

    def _return_untaken(self) -> None:
        """Give back what no processor has taken, where one of it waits too long or fetching has ended.

        All of it at once: what came after a job that waits too long would wait no less, and given
        back on its own it would overtake that one.
        """
        for room in self._rooms:
            if self._may_fetch:
                oldest = room.hand.oldest_offer()
                if oldest is None or time.monotonic() - oldest < HOLD:
                    continue
                room.rate.misjudged()
            for unit in room.hand.withdraw():
                self._note((unit, settlements.given_back(unit)))

    def _retry_later_ones(self) -> None:
        if self._later and time.monotonic() >= self._later_at:
            self._settlements += self._later
            self._later = []

    # The call.

    def _exchange(self, room: Room, wanted: int) -> None:
        acknowledged = self._acknowledged[: self._repeating or MOST_SETTLED]
        filed = self._settlements[:MOST_SETTLED]
        looks = wanted > 0 or room.token
        # With no queue to take from, a wish brings only what earlier calls were granted.
        learns = self._uncertain > 0 and not wanted and not looks
        request = ExchangeRequest(
            identity=self._membership.identity,
            first_ticket=self._next_ticket,
            wanted=self._uncertain if learns else wanted,
            queues=room.ordering.next() if looks else (),
            acknowledged=acknowledged,
            settlements=filed,
            notes=self._digest(acknowledged) if self._notes else (),
        )
        begun = time.monotonic()
        try:
            reply = self._store.exchange(request)
        except (redis.RedisError, OSError) as error:
            self._outage.failed("The exchange of jobs with Redis", error)
            self._look_everywhere()
            self._uncertain = max(self._uncertain, request.wanted)
            self._repeating = len(acknowledged)
            self._perhaps_settled.update(map(id, filed))
            time.sleep(self._pause.seconds())
            return
        room.rate.round_trip(time.monotonic() - begun)
        if reply.buried:
            self._start_over(request.identity)
            return
        self._repeating = 0
        self._bulletin.came(reply.bulletin)
        del self._acknowledged[: len(acknowledged)]
        del self._settlements[: len(filed)]
        for ticket in acknowledged:
            self._forget(ticket)
        self._take_verdicts(filed, reply)
        for each in self._rooms:
            each.measure()
        if looks:
            room.token = False
            # Fewer than wanted means that nothing is left: from here on the listener waits. What came may be
            # what an earlier call for another room was granted, and then nobody has looked here.
            repeated = self._uncertain > 0 and len(self._rooms) > 1
            room.look = wanted > 0 and (repeated or len(reply.jobs) >= wanted)
        self._take_jobs(reply, request.wanted)
        self._hear_errors(reply)
        self._due_in(reply.due_ms)
        self._note_drained(room, reply, wanted)

    def _digest(self, acknowledged: list[int]) -> tuple[Effect, ...]:
        return self._notes.digest([self.held[each].notes for each in acknowledged])

    def _take_jobs(self, reply: ExchangeReply, wanted: int) -> None:
        identity = self._membership.identity
        offers: dict[Room, list[Unit]] = {}
        for taken in reply.jobs:
            if taken.ticket in self.held:
                continue  # a repeat of what is here already
            unit = Unit(taken.ticket, identity, taken.queue, taken.payload, taken.fetched_ms)
            offers.setdefault(self._hold(unit), []).append(unit)
        if wanted > 0:
            self._next_ticket = max(self._next_ticket, reply.next_ticket)
            self._uncertain = max(0, self._uncertain - wanted)
        for room, units in offers.items():
            if self._may_fetch:
                room.hand.offer(units)
                continue
            # Asked for before fetching ended: a job that is to run alone must not get company now.
            for unit in reversed(units):
                self._note((unit, settlements.given_back(unit)))

    def _take_verdicts(self, filed: list[Settlement], reply: ExchangeReply) -> None:
        for settlement, verdict in zip(filed, reply.verdicts, strict=True):
            if isinstance(verdict, str):
                self._put_off(settlement, verdict)
                continue
            if verdict == 0 and id(settlement) in self._perhaps_settled:
                verdict = 1  # an earlier call did it, and its reply was lost
            if verdict == 0:
                logger.warning("A job was settled that Redis no longer knew as ours.")
            self._forget(settlement.ticket)
            put_off = isinstance(settlement.verdict, str)
            settlement.verdict = verdict
            if settlement.done is not None:
                settlement.done.set()
            if put_off and verdict == 1 and settlement.late is not None:
                settlement.late()
        self._perhaps_settled.clear()

    def _put_off(self, settlement: Settlement, problem: str) -> None:
        """Redis could not settle this job now: it is tried again later, and nobody waits for it."""
        self._outage.failed("Settling a job", redis.ResponseError(problem))
        self._later.append(settlement)
        self._later_at = time.monotonic() + (LATER if self._open else LATER_AT_STOP)
        settlement.verdict = problem
        if settlement.done is not None:
            settlement.done.set()

    def _forget(self, ticket: int) -> None:
        self.held.pop(ticket, None)
        self._ended_tickets.discard(ticket)

    def _hear_errors(self, reply: ExchangeReply) -> None:
        """Errors of single keys. Those that say "not now" are an outage, the others are told now
        and then.
        """
        away = [each for each in reply.errors if _passing(each)]
        if away:
            self._outage.failed("Fetching", redis.ResponseError(away[0].partition(": ")[2]))
            self._look_everywhere()
            time.sleep(self._pause.seconds())
            return
        self._pause.reset()
        self._outage.over(wrote=bool(reply.jobs))
        for each in reply.errors:
            self._outage.failed("Fetching", redis.ResponseError(each))

    def _note_drained(self, room: Room, reply: ExchangeReply, wanted: int) -> None:
        if reply.jobs:
            self.drained.clear()
        if self.held or reply.due_ms == 0:
            for each in self._rooms:
                each.empty = False
        elif wanted > 0:
            room.empty = True
            if all(each.empty or not each.queues for each in self._rooms):
                self.drained.set()

    def _start_over(self, buried: str) -> None:
        """Others took this worker for dead and have its jobs now. Go on under a new identity."""
        identity = self._membership.renew(buried)
        logger.error(
            "This worker (%s) was taken for dead and its %d jobs were given to others; it goes on as %s.",
            buried,
            len(self.held),
            identity,
        )
        for room in self._rooms:
            room.unfinished -= len(room.hand.withdraw())
        for unit in self._passed_on:
            unit.room.leaves()
        self._passed_on = []
        self._uncertain = self._repeating = 0
        self._perhaps_settled.clear()
        for settlement in [*self._settlements, *self._later]:
            settlement.verdict = 0
            if settlement.done is not None:
                settlement.done.set()
        # The processors that still run such jobs are not free: they count as unfinished until they are done.
        self.held, self._ended_tickets = {}, set()
        self._acknowledged, self._settlements, self._later = [], [], []
        self._look_everywhere()

    def _last_words(self) -> None:
        """Settle what came in at the very end, and let go of a token that nobody will use."""
        self._gather(0.0)
        self._return_untaken()
        for room in self._rooms:
            if room.queues:
                room.token = True
                self._exchange(room, 0)


def _passing(error: str) -> bool:
    words = error.partition(": ")[2]
    return is_unavailable(redis.ResponseError(words))
