"""All rooms of a worker: the processors' first, and that of the event loop where there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django_cogworker.worker.fetch.room import Room
from django_cogworker.worker.hand import Unit


class Rooms:
    """The ones of a fetcher."""

    def __init__(self, rooms: Sequence[Room]) -> None:
        """The first is that of the processors."""
        self._all = tuple(rooms)
        self.main = self._all[0]
        self._by_queue = {queue: room for room in self._all for queue in room.queues}

    def __iter__(self) -> Iterator[Room]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, unit: Unit) -> Room:
        """From now on the job counts in its queue's room."""
        room: Room = self._by_queue.get(unit.queue, self.main)
        unit.room = room
        room.unfinished += 1
        return room

    def have(self, ticket: int) -> bool:
        """Whether the job is offered to somebody, or runs."""
        return any(ticket in each.hand.untaken or ticket in each.hand.running for each in self._all)

    @property
    def have_enough(self) -> bool:
        """Whether some job waits to be taken."""
        return any(each.hand.untaken for each in self._all)

    def look(self) -> None:
        """There may be something to fetch for each of them."""
        for room in self._all:
            room.look = True
            room.empty = False

    # What the last look brought.

    def not_empty(self) -> None:
        for room in self._all:
            room.empty = False

    @property
    def are_empty(self) -> bool:
        """Whether none of them had anything to fetch when it last looked."""
        return all(each.empty or not each.queues for each in self._all)
