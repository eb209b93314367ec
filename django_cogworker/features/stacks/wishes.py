"""Asking a worker for the stacks of its running jobs, and reading what it wrote.

The wish is a key of that worker. A bulletin has all workers look for their own; whoever takes the wish away
answers it. Wish and answer end by themselves, so nobody has to tidy up after a worker that died in between.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from django_cogworker.store.keys import Keys
from django_cogworker.store.store import get_store

#: Seconds that a worker may take to hear of a wish (its next beat will do), and that the answer is kept.
WISH_TTL = 60
ANSWER_TTL = 120


def wish_key(keys: Keys, identity: str) -> str:
    """string with a TTL: `1`, somebody wants the stacks of that worker's jobs."""
    return keys.of("stacks", "asked", identity)


def answer_key(keys: Keys, identity: str) -> str:
    """string with a TTL: the stacks, as JSON."""
    return keys.of("stacks", "taken", identity)


@dataclasses.dataclass(frozen=True, slots=True)
class JobStack:
    """Where one job was. `since`: when its code began, by its worker's clock (epoch seconds). `stack`: as Python
    shows it, the innermost call last; of a long one the end.
    """

    jid: str
    job_class: str
    queue: str
    since: float
    stack: str


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerStacks:
    """What is there of one worker. `asked`: somebody asked, and it has not answered yet. `at`: when the stacks were
    taken, by its clock; `None` where there are none. `more`: so many running jobs were left out.
    """

    identity: str
    asked: bool = False
    at: float | None = None
    jobs: tuple[JobStack, ...] = ()
    more: int = 0


def ask(identity: str) -> bool:
    """Ask for them; false where no such worker lives. Raises redis-py's errors."""
    store = get_store()
    client: Any = store.client
    if not client.exists(store.keys.process(identity)):
        return False
    client.set(wish_key(store.keys, identity), "1", ex=WISH_TTL)
    store.post_bulletin()
    return True


def take_wish(identity: str) -> bool:
    """Whether there was a wish for this worker; now there is none any more."""
    store = get_store()
    return bool(store.client.unlink(wish_key(store.keys, identity)))


def answer(identity: str, at: float, jobs: list[JobStack], more: int) -> None:
    """Write them down. Raises redis-py's errors."""
    told = {"at": at, "more": more, "jobs": [dataclasses.asdict(each) for each in jobs]}
    store = get_store()
    store.client.set(answer_key(store.keys, identity), json.dumps(told), ex=ANSWER_TTL)


def read(identity: str) -> WorkerStacks:
    """What is there. One round trip."""
    store = get_store()
    pipe: Any = store.client.pipeline(transaction=False)
    pipe.exists(wish_key(store.keys, identity))
    pipe.get(answer_key(store.keys, identity))
    asked, raw = pipe.execute()
    if raw is None:
        return WorkerStacks(identity, bool(asked))
    told = json.loads(raw)
    jobs = tuple(JobStack(**each) for each in told["jobs"])
    return WorkerStacks(identity, bool(asked), told["at"], jobs, told["more"])
