"""Moving jobs that wait by somebody's wish: to a queue, to another time, to the dead set, or away.

One verb for all of it, so that a job is moved once, whoever else is at it: workers that fetch it, the mover of
due jobs, a second person with the same page. A batch takes jobs from one key; each has its own verdict.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Literal

import redis

from django_cogworker.store.keys import Keys
from django_cogworker.store.plan import Plan
from django_cogworker.store.scripts import script
from django_cogworker.store.values import Effect

#: A job that comes due within so many seconds wakes an idle worker; later ones are seen at its next look.
SOON = 3
#: Entries of a list that one call goes through where jobs are not where they were seen: some 20 ms of Redis's time.
LOOKS = 200_000
#: The script's word for "not looked for in this call".
_NOT_YET = -1

Where = Literal["queue", "schedule", "retry", "dead", "gone"]


@dataclasses.dataclass(frozen=True, slots=True)
class Refiling:
    """One job: the bytes that lie there, and where it goes (`gone`: nowhere) as which bytes.

    `at`: due time in `schedule` and `retry`; `None` for the one that it has in the set where it is. What comes to
    `dead` has died now; what is there has died when it did. `far`: how far from the right end of a list it was seen,
    -1 where that is not known.
    """

    member: bytes
    to: Where
    payload: bytes = b""
    queue: str = ""
    priority: int = 0
    at: float | None = None
    effects: tuple[Effect, ...] = ()
    far: int = -1

    @property
    def rank(self) -> str:
        if self.to == "queue":
            return str(self.priority)
        return "" if self.at is None else repr(float(self.at))


def refile_by_script(
    client: redis.Redis,
    keys: Keys,
    dead_bounds: Sequence[int],
    source: str,
    items: Sequence[Refiling],
) -> list[int | str]:
    verdicts: list[int | str] = [_NOT_YET] * len(items)
    while left := [place for place, each in enumerate(verdicts) if each == _NOT_YET]:
        # Each call looks for one at least.
        plan = Plan(
            keys,
            [source, keys.queues, keys.schedule, keys.retry, keys.dead, keys.due_tokens],
        )
        args: list[Any] = [*dead_bounds, SOON, LOOKS]
        for place in left:
            _lay_out(items[place], plan, args)
        answer = script("refile").run(client, plan.keys, args)
        for place, each in zip(left, answer, strict=True):
            verdicts[place] = (
                each if isinstance(each, int) else each.decode("utf-8", "backslashreplace")
            )
    return verdicts


def _lay_out(item: Refiling, plan: Plan, args: list[Any]) -> None:
    base = plan.queue(item.queue) if item.to == "queue" else 0
    effects = json.dumps(plan.effects(item.effects)) if item.effects else ""
    args += (item.to, base, item.queue, item.rank, item.member, item.far, item.payload, effects)
