"""All jobs, wherever they are: with a worker, in a set, on a queue.

from django_cogworker.api import AllJobs, seek

for each in AllJobs().heads().entries:
    print(each.place, each.at, each.record.job_class)
found = seek("5f0c6e1d2b7a49c8e3d1a0b4")

Nothing here reads without a bound. The heads of all places take six round trips; a search has seconds, and a
cursor that goes on through one place after the other.
"""

from __future__ import annotations

import dataclasses
import heapq
import time
from collections.abc import Iterator, Sequence
from typing import Any

from django_cogworker.api.acting import Action, Verdict, carry_out
from django_cogworker.api.criteria import Criteria, Matcher
from django_cogworker.api.queue_states import QueueState, queue_names, queue_states
from django_cogworker.api.queues import Queue
from django_cogworker.api.records import JobRecord, Place
from django_cogworker.api.sets import DeadSet, RetrySet, ScheduledSet
from django_cogworker.api.shelf import BUDGET, Shelf, check_limit
from django_cogworker.api.work import Work, WorkSet
from django_cogworker.exceptions import InvalidQuery, InvalidQueueName
from django_cogworker.store.store import get_store
from django_cogworker.store.walks import read_heads

#: In the order in which a search goes through them.
PLACES: tuple[Place, ...] = ("worker", "retry", "schedule", "dead", "queue")
SETS: dict[str, Any] = {"retry": RetrySet, "schedule": ScheduledSet, "dead": DeadSet}

#: Jobs in workers' hands that are looked through, and those of them among the heads.
MOST_WORK = 1_000
WORK_HEADS = 250
#: Queues whose heads are read: the longest ones.
MOST_QUEUES = 50
#: So many of each queue at the least.
LEAST_OF_QUEUE = 5
#: Of the jobs on a queue so many came last.
NEWEST = 200

_QUEUE = "queue:"


@dataclasses.dataclass(frozen=True, slots=True)
class Sighting:
    """A job and where it was seen.

    `at` (epoch seconds): since when its worker has it, since when it is on its queue, when it is due, or when it
    died. `worker`: who has it, and `alive` whether that one still beats. `seen`: a short text by which `seek` finds
    it again at once.
    """

    record: JobRecord
    at: float | None
    worker: str = ""
    alive: bool = True

    @property
    def jid(self) -> str:
        return self.record.jid

    @property
    def place(self) -> Place:
        return self.record.place

    @property
    def label(self) -> str:
        """`worker`, `retry`, `schedule`, `dead` or `queue:<name>`."""
        return self.record.label

    @property
    def seen(self) -> str:
        return f"worker/{self.worker}" if self.place == "worker" else self.record.seen


@dataclasses.dataclass(frozen=True, slots=True)
class JobHeads:
    """The first jobs of each place, those nearest to now first. `sizes`: how many there are in each place."""

    entries: list[Sighting]
    sizes: dict[Place, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Sightings:
    """What a search found: see `JobMatches`."""

    entries: list[Sighting]
    cursor: str | None
    looked_at: int
    finished: bool


class AllJobs:
    """The jobs of some places, by default of all."""

    def __init__(self, places: Sequence[Place] = PLACES) -> None:
        """Raises `InvalidQuery`."""
        unknown = sorted(set(places) - set(PLACES))
        if unknown:
            raise InvalidQuery(f"{unknown} are no places; those are {', '.join(PLACES)}.")
        self._places = tuple(each for each in PLACES if each in places)

    def heads(self, limit: int = 50) -> JobHeads:
        """At most `limit` jobs: those that run, of each set the first, of each of the 50 longest queues the newest.

        Six round trips, whatever lies there.
        """
        check_limit(limit)
        held = WorkSet().held(max(limit, WORK_HEADS)) if "worker" in self._places else None
        queues = _filled() if "queue" in self._places else []
        longest = heapq.nlargest(MOST_QUEUES, queues, key=lambda each: each.size)
        shelves: list[tuple[Shelf[Any], int]] = [
            (SETS[each](), limit) for each in self._places if each in SETS
        ]
        few = max(LEAST_OF_QUEUE, limit // max(1, len(longest)))
        sets = len(shelves)
        shelves += [(Queue(each.name), few) for each in longest]
        readings = read_heads(
            get_store().client,
            [
                (each.walk(backwards=each.newest_first or number >= sets), count)
                for number, (each, count) in enumerate(shelves)
            ],
        )
        sizes: dict[Place, int] = {} if held is None else {"worker": held.total}
        seen = [] if held is None else [_of_work(each) for each in held.entries]
        for (shelf, _), reading in zip(shelves, readings, strict=True):
            seen += [_of_record(shelf.record(each)) for each in reading.entries]
        for (shelf, _), reading in zip(shelves[:sets], readings, strict=False):
            sizes[shelf.label] = reading.total  # type: ignore[index]
        if "queue" in self._places:
            sizes["queue"] = sum(each.size for each in queues)
        now = time.time()
        nearest = heapq.nsmallest(limit, seen, key=lambda each: _distance(each, now))
        return JobHeads(nearest, sizes)

    def search(
        self,
        criteria: Criteria | None = None,
        *,
        cursor: str | None = None,
        limit: int = 25,
        budget: float = BUDGET,
        **fields: Any,
    ) -> Sightings:
        """Jobs that match, place by place: at most `limit`, looked for at most for about `budget` seconds.

        Give `Criteria`, or its fields by name. Raises `InvalidQuery`.
        """
        check_limit(limit)
        wanted = Criteria.of(criteria, fields)
        deadline = time.monotonic() + budget
        begin, _, inner = (cursor or "").rpartition("|")
        found: list[Sighting] = []
        looked_at = 0
        for label in self._labels(begin):
            if looked_at and (time.monotonic() >= deadline or len(found) >= limit):
                return Sightings(found, f"{label}|", looked_at, False)
            left = max(0.0, deadline - time.monotonic())
            part = among(
                label, wanted, cursor=inner or None, limit=max(1, limit - len(found)), budget=left
            )
            inner = ""
            found += part.entries
            looked_at += part.looked_at
            if part.cursor is not None:
                return Sightings(found, f"{label}|{part.cursor}", looked_at, False)
        return Sightings(found, None, looked_at, True)

    def act(self, entries: Sequence[Sighting], action: Action) -> list[Verdict]:
        """Do it with these, wherever they lie; one verdict each. What a worker has is refused."""
        return carry_out([each.record for each in entries], action)

    def _labels(self, begin: str) -> Iterator[str]:
        """The places from that one on; queues by name, and those alone that hold something."""
        place = begin.partition(":")[0]
        if place and place not in self._places:
            raise InvalidQuery(f"{begin!r} is no place of this search.")
        for each in self._places[self._places.index(place) if place else 0 :]:
            if each != "queue":
                yield each
                continue
            for queue in _filled():
                label = f"{_QUEUE}{queue.name}"
                if each != place or label >= begin:
                    yield label


def among(
    label: str, wanted: Criteria, *, cursor: str | None, limit: int, budget: float
) -> Sightings:
    """The search in the place of that label, with a cursor of its own. Raises `InvalidQuery`."""
    if label == "worker":
        return _among_work(wanted, cursor, limit)
    shelf = shelf_of(label)
    part = shelf.search(wanted, cursor=cursor, limit=limit, budget=budget)
    seen = [_of_record(each) for each in part.entries]
    return Sightings(seen, part.cursor, part.looked_at, part.finished)


def _among_work(wanted: Criteria, inner: str | None, limit: int) -> Sightings:
    """There are few: all are read, and the cursor is a number of them."""
    if inner is not None and not (inner.isascii() and inner.isdigit()):
        raise InvalidQuery(f"{inner!r} is no cursor of ours.")
    work = WorkSet().read(MOST_WORK)
    begin, matcher, found = int(inner or 0), Matcher(wanted), []
    for number, each in enumerate(work[begin:], begin + 1):
        if matcher.matches(each.record):
            found.append(_of_work(each))
        if len(found) == limit and number < len(work):
            return Sightings(found, str(number), number - begin, False)
    return Sightings(found, None, len(work[begin:]), True)


def seen_again(seen: str, jid: str) -> Sighting | None:
    """The job, where it is still where it was seen."""
    label, _, rest = seen.rpartition("/")
    if label == "worker":
        held = (_of_work(each) for each in WorkSet(rest).read(MOST_WORK))
        return next((each for each in held if each.jid == jid), None)
    try:
        (record,) = shelf_of(label).get([rest])
    except InvalidQuery:  # a text that somebody wrote by hand
        return None
    return None if record is None or record.jid != jid else _of_record(record)


def among_newest(label: str, jid: str) -> Sighting | None:
    """The job, if it is one of the last that came to that queue: a search begins at the other end. One round trip."""
    try:
        page = shelf_of(label).page(limit=NEWEST, backwards=True)
    except InvalidQuery:  # a queue that cannot be, by other hands
        return None
    return next((_of_record(each) for each in page.entries if each.jid == jid), None)


def shelf_of(label: str) -> Shelf[Any]:
    """The set or the queue of that label. Raises `InvalidQuery`."""
    if label.startswith(_QUEUE):
        try:
            return Queue(label.removeprefix(_QUEUE))
        except InvalidQueueName as error:
            raise InvalidQuery(str(error)) from None
    if label not in SETS:
        raise InvalidQuery(f"{label!r} is no place where jobs wait.")
    shelf: Shelf[Any] = SETS[label]()
    return shelf


def _filled() -> list[QueueState]:
    return [each for each in queue_states(queue_names()) if each.size]


def _of_work(work: Work) -> Sighting:
    return Sighting(work.record, work.since, work.identity, work.alive)


def _of_record(record: JobRecord) -> Sighting:
    at = record.score
    if record.place == "queue":
        at = record.created_at if record.enqueued_at is None else record.enqueued_at
    return Sighting(record, at)


def _distance(seen: Sighting, now: float) -> tuple[bool, float]:
    """What runs comes first, then what has just happened or is about to."""
    return seen.place != "worker", 1e12 if seen.at is None else abs(seen.at - now)
