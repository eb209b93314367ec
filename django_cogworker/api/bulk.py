"""One action for all jobs that match, in bounded steps.

A page drives it request by request: `step()` works for a while, `state` is what the next request needs, as JSON can
hold it. It goes through the place once, from the end where newcomers come in, and takes each job as it finds it. (Jobs
of a queue that are moved to another one are to keep their order: it begins with the oldest, and looks once more in
the end, since jobs fetched meanwhile may have brought others past it.)

* What was already taken away behind it changes nothing of where it goes on.
* What came after the beginning is left alone: jobs that were created, enqueued, failed for the first time, or were
  retried by somebody (by this very action, and failed again) since then, and in the dead set those that died since.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, Protocol

from django_cogworker.api.acting import Action, carry_out, is_done_already
from django_cogworker.api.criteria import Criteria, Matcher
from django_cogworker.api.records import JobRecord
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.store.store import get_store
from django_cogworker.store.walks import Lying, Pace, Reading, Walk

#: Classes that are counted by name; all others together are "".
MOST_CLASSES = 100


class Place(Protocol):
    """Where jobs wait."""

    #: `schedule`, `retry`, `dead` or `queue:<name>`.
    label: str
    #: The queue that it is, or ''.
    on: str

    def walk(self, *, backwards: bool) -> Walk: ...

    def record(self, lying: Lying) -> JobRecord: ...


@dataclasses.dataclass(slots=True)
class BulkProgress:
    """How far it has come.

    `looked_at` entries, of which `done` were acted on; `gone`: somebody was quicker; `refused`: how many, by reason;
    `newer`: came after the beginning and were left alone. `classes`: those done, by job class.
    """

    looked_at: int = 0
    done: int = 0
    gone: int = 0
    newer: int = 0
    refused: dict[str, int] = dataclasses.field(default_factory=dict)
    classes: dict[str, int] = dataclasses.field(default_factory=dict)
    finished: bool = False


class BulkAction:
    """An action for all jobs of a place that match.

    bulk = BulkAction(RetrySet(), Action("retry"), Criteria(queue="mail"))
    while not bulk.step(budget=0.5).finished:
        keep(bulk.state)  # BulkAction.resume(RetrySet(), state) goes on with it
    """

    def __init__(self, place: Place, action: Action, criteria: Criteria | None = None) -> None:
        self._place = place
        self.action = action
        self.criteria = Criteria() if criteria is None else criteria
        self.progress = BulkProgress()
        self._cursor = ""
        self._begun: float | None = None
        self._in_order = bool(place.on) and action.kind == "move"
        #: How many were done when this pass began.
        self._before = 0

    @property
    def state(self) -> dict[str, Any]:
        """All that `resume` needs."""
        return {
            "place": self._place.label,
            "action": self.action.as_dict(),
            "criteria": self.criteria.as_dict(),
            "progress": dataclasses.asdict(self.progress),
            "cursor": self._cursor,
            "begun": self._begun,
            "before": self._before,
        }

    @classmethod
    def resume(cls, place: Place, state: Mapping[str, Any]) -> BulkAction:
        """The action whose state that was. Raises `InvalidQuery`."""
        try:
            bulk = cls(place, Action.read(state["action"]), Criteria.read(state["criteria"]))
            bulk.progress = BulkProgress(**state["progress"])
            bulk._cursor, begun = str(state["cursor"]), state["begun"]
            bulk._begun = None if begun is None else float(begun)
            bulk._before = int(state["before"])
            if state["place"] != place.label:
                raise ValueError(f"it belongs to {state['place']!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidQuery(
                f"This is no state of an action on {place.label}: {error}."
            ) from None
        return bulk

    def run(self) -> BulkProgress:
        """All steps until the end. O(entries of the place)."""
        while not self.step(60.0).finished:
            pass
        return self.progress

    def step(self, budget: float = 1.0) -> BulkProgress:
        """Go on for about `budget` seconds, at least for one batch. Raises redis-py's errors; then the same step can
        be tried again, and what was done is not done twice.
        """
        deadline = time.monotonic() + budget
        if self._begun is None:
            self._begun = _redis_now()
        matcher = Matcher(self.criteria, self._place.on)
        walk = self._place.walk(backwards=not self._in_order)
        pace = Pace()
        while not self.progress.finished:
            reading = pace.read(walk, self._cursor)
            taken = self._act(reading, matcher, self._begun)
            self._cursor = reading.cursor(len(reading.entries), taken)
            self.progress.looked_at += len(reading.entries)
            if not reading.more:
                self._end_of_pass()
            if time.monotonic() >= deadline:
                break
        return self.progress

    def _end_of_pass(self) -> None:
        done = self.progress.done
        self.progress.finished = not self._in_order or done == self._before
        self._before, self._cursor = done, ""

    def _act(self, reading: Reading, matcher: Matcher, begun: float) -> set[int]:
        """Places in the reading where there is nothing any more."""
        chosen: dict[int, JobRecord] = {}
        newer = 0
        for at, lying in enumerate(reading.entries):
            if not matcher.may_match(lying.member):
                continue
            record = self._place.record(lying)
            if not matcher.matches(record) or is_done_already(record, self.action):
                continue
            if _came_after(record, begun):
                newer += 1
            else:
                chosen[at] = record
        # A retry is stamped with a time after the beginning, whatever the clock here says.
        verdicts = carry_out(chosen.values(), self.action, now=max(time.time(), begun + 0.001))
        taken = set()
        progress = self.progress
        progress.newer += newer
        for at, verdict in zip(chosen, verdicts, strict=True):
            if verdict.outcome == "refused":
                progress.refused[verdict.reason] = progress.refused.get(verdict.reason, 0) + 1
                continue
            taken.add(at)
            if verdict:
                progress.done += 1
                _count(progress.classes, verdict.job_class)
            else:
                progress.gone += 1
        return taken


def _came_after(record: JobRecord, begun: float) -> bool:
    """Whether it is here since the beginning at the earliest."""
    moments = [record.created_at, record.enqueued_at, record.failed_at, record.retried_at]
    if record.place == "dead":
        moments.append(record.score)
    return any(each is not None and each > begun for each in moments)


def _count(classes: dict[str, int], job_class: str) -> None:
    name = job_class if job_class in classes or len(classes) < MOST_CLASSES else ""
    classes[name] = classes.get(name, 0) + 1


def _redis_now() -> float:
    client: Any = get_store().client
    seconds, micros = client.time()
    return float(seconds) + float(micros) / 1e6
