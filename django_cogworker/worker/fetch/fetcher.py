"""The fetcher: one thread that settles finished jobs and fetches new ones, in as few calls as can
be.

Its life is one loop: gather what happened (jobs finished, a token came, a processor is free) →
one `exchange` with Redis that settles all of it and asks for as many jobs as there is room for →
offer what came. So the more jobs there are, the more of them share a round trip. When nothing is
to be had, the `listener` waits for a token and the fetcher for the listener.

What it remembers is in its `ledger`: every ticket that Redis believes to be in progress here, until an
exchange has confirmed its end. A lost reply changes nothing: the same call is made again, with the
same tickets (`unanswered`).

Where jobs run are its `rooms`: the processors, and the event loop where the worker has async queues. A
call fetches for one room; those that have nothing to fetch make no call. What cannot run in its room
waits in the `corridor` for a processor.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from django_cogworker.store.store import BLOCK, Store
from django_cogworker.store.values import Settlement
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.fetch.conversation import Conversation
from django_cogworker.worker.fetch.corridor import Corridor
from django_cogworker.worker.fetch.gate import Gate
from django_cogworker.worker.fetch.ledger import MOST_SETTLED, Ledger
from django_cogworker.worker.fetch.listener import Listener
from django_cogworker.worker.fetch.room import Room
from django_cogworker.worker.fetch.rooms import Rooms
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.health import Health
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.outage import Outage

#: While processors have enough to do, finished jobs wait so long for company (seconds).
COMPANY = 0.002

_LOOK, _WAKE = object(), object()


@dataclasses.dataclass(frozen=True, slots=True)
class _Stray:
    unit: Unit


@dataclasses.dataclass(frozen=True, slots=True)
class _PassedOn:
    unit: Unit


class Fetcher:
    """The one of a worker."""

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
        self._rooms = Rooms(rooms)
        self._membership = membership
        #: One a room, by its name.
        self.listeners = {
            each.name: Listener(
                store, each.queues, outage, partial(self._heard, each), health.loop(each.name)
            )
            for each in rooms
        }
        self._turned = health.loop("fetcher")
        self._events: SimpleQueue[Any] = SimpleQueue()
        self._gate = Gate(membership)
        self._ledger = Ledger(membership, outage)
        self._corridor = Corridor(self._rooms.main, self._gate.may_fetch)
        self._conversation = Conversation(
            store=store,
            membership=membership,
            outage=outage,
            due_in=due_in,
            bulletin=bulletin,
            rooms=self._rooms,
            gate=self._gate,
            ledger=self._ledger,
            corridor=self._corridor,
        )
        self._ended = False
        #: Set while the worker has nothing at all to do; a burst worker waits for it.
        self.drained = self._conversation.drained

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
        self._gate.is_open = True
        self._look_now()

    def close(self) -> None:
        """Fetch no more; what no processor has taken yet goes back."""
        self._gate.is_open = False
        self._events.put(_WAKE)

    def hold_back(self, wish: bool) -> None:
        """While true: fetch nothing, though open, and give back what no processor has taken."""
        self._gate.is_held_back = wish
        self._events.put(_WAKE if wish else _LOOK)

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
        return ticket in self._ledger.ended

    def is_in_hand(self, ticket: int) -> bool:
        """Whether the job is offered to somebody here, or runs."""
        return self._rooms.have(ticket)

    @property
    def held(self) -> dict[int, Unit]:
        """The jobs that Redis still believes to be in progress here, as far as we know, by ticket."""
        return self._ledger.held

    @property
    def unsettled(self) -> int:
        """How many they are."""
        return len(self._ledger.held)

    @property
    def is_certain(self) -> bool:
        """Whether we know all that Redis granted us; not after a call whose reply was lost."""
        return self._conversation.is_certain

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
        self._move_passed_on()
        self._ledger.retry_later_ones()
        looking = [each for each in self._rooms if self._is_looking(each)]
        if not looking and self._ledger.has_ends:
            looking = [self._rooms.main]
        for room in looking:
            self._conversation.exchange(room, self._wanted(room))
        if not looking and not self.is_certain:
            self._conversation.exchange(self._rooms.main, 0)  # learn what lost replies held
        for room in self._rooms:
            if not room.look and self._wanted(room) > 0:
                # Room is left and nothing is to be had: wait for a token.
                self.listeners[room.name].arm()

    def _is_looking(self, room: Room) -> bool:
        # A token in our hands goes back by a look without wishes, or the jobs it stands for wait for nobody.
        return room.token or (room.look and self._wanted(room) > 0)

    def _patience(self) -> float:
        """How long the next wait for an event may last."""
        if self._ledger.has_ends or not self.is_certain:
            return 0.0
        patience = float(BLOCK)
        now = time.monotonic()
        deadlines = [self._corridor.deadline, self._ledger.next_try]
        for room in self._rooms:
            if self._is_looking(room):
                return 0.0
            deadlines.append(room.deadline)
        for deadline in deadlines:
            if deadline is not None:
                patience = min(patience, max(0.001, deadline - now))
        return patience

    def _gather(self, patience: float) -> None:
        events = self._events
        try:
            event = events.get(timeout=patience) if patience > 0 else events.get_nowait()
        except Empty:
            return
        self._note(event)
        if self._ledger.has_ends and self._rooms.have_enough:
            time.sleep(COMPANY)  # the processors have enough to do; more will have finished
        finished = 1
        try:
            while finished < MOST_SETTLED:
                self._note(events.get_nowait())
                finished += 1
        except Empty:
            return

    def _note(self, event: Any) -> None:
        ledger = self._ledger
        if type(event) is Unit:
            if ledger.ends(event):
                ledger.acknowledged.append(event.ticket)
        elif event is _LOOK:
            self._rooms.look()
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
            else:
                ledger.settle(subject, word)

    def _adopt(self, unit: Unit) -> None:
        if unit.identity == self._membership.identity and unit.ticket not in self._ledger.held:
            self._ledger.held[unit.ticket] = unit
            self._rooms.enter(unit)
            self._ledger.give_back(unit)

    def _receive(self, unit: Unit) -> None:
        """A job is to move to the processors; it does as soon as one is free."""
        if self._ledger.is_running(unit):
            self._corridor.enter(unit)
        elif unit.identity != self._membership.identity:
            unit.room.leaves()  # others have it; nobody here runs it

    def _move_passed_on(self) -> None:
        self._corridor.let_through()
        for unit in reversed(self._corridor.turn_back()):
            self._ledger.give_back(unit)

    def _wanted(self, room: Room) -> int:
        return room.wanted() if self._gate.may_fetch() else 0

    def _return_untaken(self) -> None:
        for room in self._rooms:
            for unit in room.turn_back(may_fetch=self._gate.may_fetch()):
                self._ledger.give_back(unit)

    def _last_words(self) -> None:
        """Settle what came in at the very end, and let go of a token that nobody will use."""
        self._gather(0.0)
        self._return_untaken()
        for room in self._rooms:
            if room.queues:
                room.token = True
                self._conversation.exchange(room, 0)
