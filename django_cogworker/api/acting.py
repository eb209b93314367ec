"""Moving jobs by hand: again, now, later, elsewhere, or away.

Every batch is one step in Redis, with a verdict for each job; a job is moved once, whoever else is at it. Features
hear of it by effects in the same step: `graduated` where it goes to a queue, `removed` where it is deleted, `refiled`
where it waits on in a set or is buried. No death handler and no counter hears of it: nothing has run.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from django.utils.translation import gettext_noop

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.asking import Effects
from django_cogworker.jobs.when import Moment, due_at
from django_cogworker.parsers import check_queue_name
from django_cogworker.payload.codec import encode, queue_of, stamp
from django_cogworker.payload.failure import clean
from django_cogworker.payload.job import LAST_MOMENT, priority_of
from django_cogworker.store.refiling import Refiling
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

if TYPE_CHECKING:
    from django_cogworker.api.records import JobRecord

logger = logging.getLogger("django_cogworker")

Kind = Literal["retry", "delete", "reschedule", "move", "kill"]
KINDS: tuple[Kind, ...] = ("retry", "delete", "reschedule", "move", "kill")

#: Jobs of one step, and the bytes of their payloads together.
BATCH = 500
BATCH_BYTES = 4_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """What is to be done with a job.

    `retry`: to its queue at once (a scheduled one: now). `delete`. `reschedule`: due at `at` (epoch seconds), in its
    set. `move`: to `queue`; one in a set waits on there, and goes to that queue in its time. `kill`: to the dead set.
    Raises `InvalidQuery`.
    """

    kind: Kind
    at: float | None = None
    queue: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidQuery(f"{self.kind!r} is no action; those are {', '.join(KINDS)}.")
        if (self.at is not None) != (self.kind == "reschedule"):
            raise InvalidQuery("'reschedule' takes a time, and no other action does.")
        if self.at is not None and not _is_moment(self.at):
            raise InvalidQuery(f"{self.at!r} is no time in epoch seconds.")
        if bool(self.queue) != (self.kind == "move"):
            raise InvalidQuery("'move' takes the name of a queue, and no other action does.")
        if self.queue:
            try:
                check_queue_name(self.queue)
            except ValueError as error:
                raise InvalidQuery(f"{self.queue!r} is no queue: {error}.") from None

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`. Raises `InvalidQuery`."""
        try:
            return cls(**fields)
        except TypeError:
            raise InvalidQuery(f"{dict(fields)!r} is no action.") from None


def _is_moment(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and abs(value) < LAST_MOMENT


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one job: `done`, `gone` (it was not there any more, as it was) or `refused`; then
    `reason` says why.
    """

    jid: str
    job_class: str
    outcome: Literal["done", "gone", "refused"]
    reason: str = ""

    def __bool__(self) -> bool:
        return self.outcome == "done"


def moment(at: Moment) -> float:
    """Epoch seconds of an aware `datetime` or a number."""
    return due_at(at)


def is_done_already(record: JobRecord, action: Action) -> bool:
    """Whether the job is where the action would bring it."""
    if action.kind == "reschedule":
        return record.score == action.at
    return (action.kind == "move" and record.queue == action.queue) or (
        action.kind == "kill" and record.place == "dead"
    )


def carry_out(
    records: Iterable[JobRecord], action: Action, *, now: float | None = None
) -> list[Verdict]:
    """Do it with these jobs; one verdict each, in their order. Raises redis-py's errors.

    A step takes at most 500 jobs from one place. Where Redis goes away in the middle, earlier steps are done.
    """
    plans = _Plans(action, time.time() if now is None else now)
    given = list(records)
    planned = [plans.of(each) for each in given]
    verdicts: dict[int, int | str] = {}
    for key, places in _batches(given, planned):
        items = [each for place in places if isinstance(each := planned[place], Refiling)]
        verdicts.update(zip(places, get_store().refile(key, items), strict=True))
    return [
        _verdict(record, plan if isinstance(plan, str) else verdicts[place])
        for place, (record, plan) in enumerate(zip(given, planned, strict=True))
    ]


def _batches(
    records: Sequence[JobRecord], planned: Sequence[Refiling | str]
) -> Iterable[tuple[str, list[int]]]:
    """Places of the jobs that are to be moved, by the key where they lie."""
    by_key: dict[str, list[int]] = {}
    for place, plan in enumerate(planned):
        if isinstance(plan, Refiling):
            by_key.setdefault(records[place].key, []).append(place)
    for key, places in by_key.items():
        batch: list[int] = []
        size = 0
        for place in places:
            more = len(records[place].raw) * 2
            if batch and (len(batch) == BATCH or size + more > BATCH_BYTES):
                yield key, batch
                batch, size = [], 0
            batch.append(place)
            size += more
        yield key, batch


def _verdict(record: JobRecord, answer: int | str) -> Verdict:
    jid, job_class = record.jid, record.job_class
    if isinstance(answer, str):
        if answer not in _REASONS:
            logger.error("Job %s cannot be moved: %s", jid, answer, extra={"jid": jid})
        return Verdict(jid, job_class, "refused", answer)
    return Verdict(jid, job_class, "done" if answer == 1 else "gone")


_NO_JOB = gettext_noop("it is no job; it can only be deleted")
_RUNS = gettext_noop("a worker has it")
_WAITS = gettext_noop("it is on its queue already")
_NO_QUEUE = gettext_noop("it names no queue")
_THERE = gettext_noop("it is there already")
_NO_TIME = gettext_noop("it waits for no time")
_REASONS = frozenset({_NO_JOB, _RUNS, _WAITS, _NO_QUEUE, _THERE, _NO_TIME})


class _Plans:
    """What to ask of the store for each job, or why not."""

    def __init__(self, action: Action, now: float) -> None:
        self._action = action
        self._now = now
        self._graduated = Effects("graduated")
        self._removed = Effects("removed")
        self._refiled = Effects("refiled")

    def of(self, record: JobRecord) -> Refiling | str:
        kind = self._action.kind
        if record.place == "worker":
            return _RUNS
        if kind == "delete":
            return self._deletion(record)
        if record.unparseable:
            return _NO_JOB
        if kind == "retry":
            return self._again(record)
        if is_done_already(record, self._action):
            return _THERE
        if kind == "reschedule":
            return self._later(record)
        return self._elsewhere(record) if kind == "move" else self._burial(record)

    def _deletion(self, record: JobRecord) -> Refiling:
        effects: tuple[Effect, ...] = ()
        if not record.problem:
            attempts = get_store().keys.attempts(clean(str(record.item.get("jid", record.jid)), 64))
            effects = (Effect("delete", attempts), *self._removed.of(record.item))
        return Refiling(record.raw, "gone", effects=effects, far=record.far)

    def _again(self, record: JobRecord) -> Refiling | str:
        if record.place == "queue":
            return _WAITS
        queue = queue_of(record.item)
        return self._to_queue(record, queue) if queue else _NO_QUEUE

    def _to_queue(self, record: JobRecord, queue: str) -> Refiling:
        payload = {**record.item, "queue": queue}
        payload.pop("enqueued_at", None)
        if "failed_at" in payload and record.place != "queue":
            payload["retried_at"] = round(self._now, 6)
        return Refiling(
            record.raw,
            "queue",
            stamp(encode(payload), self._now),
            queue,
            priority_of(payload),
            effects=self._graduated.of(payload),
            far=record.far,
        )

    def _later(self, record: JobRecord) -> Refiling | str:
        at = self._action.at
        if at is None or record.place not in ("schedule", "retry"):
            return _NO_TIME
        return self._in_set(record, record.item, record.raw, at)

    def _elsewhere(self, record: JobRecord) -> Refiling:
        queue = self._action.queue
        if record.place == "queue":
            return self._to_queue(record, queue)
        payload = {**record.item, "queue": queue}
        return self._in_set(record, payload, encode(payload), None)

    def _in_set(
        self, record: JobRecord, payload: dict[str, Any], raw: bytes, at: float | None
    ) -> Refiling:
        """In the set where it is."""
        place: Any = record.place
        due = (record.score or 0.0) if at is None else at
        wait = 0.0 if place == "dead" else max(0.0, due - self._now)
        effects = self._refiled.of(payload, place, wait)
        return Refiling(record.raw, place, raw, at=at, effects=effects)

    def _burial(self, record: JobRecord) -> Refiling:
        payload = {**record.item}
        payload.pop("enqueued_at", None)
        effects = self._refiled.of(payload, "dead", 0.0)
        return Refiling(record.raw, "dead", encode(payload), effects=effects, far=record.far)
