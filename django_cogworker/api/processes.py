"""Workers that live: what they say of themselves, and commands for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from django_cogworker.store.foreign import (
    Shape,
    a_number,
    a_text,
    number_in,
    or_none,
    record,
    records,
    tell_once,
    texts,
)
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store

#: What we read of a worker's facts, and of a loss. All else is shown as it is.
_FACTS: dict[str, Shape] = {
    **dict.fromkeys(("queues", "async_queues"), texts),
    **dict.fromkeys(
        ("concurrency", "async_concurrency", "async_busy", "started_at", "rss_kb"), a_number
    ),
    "classes": a_text,
}
_LOSS: dict[str, Shape] = {
    **dict.fromkeys(("at", "pid"), a_number),
    "lived": or_none(a_number),
    "identity": or_none(a_text),
    "how": a_text,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """One worker as of its last beat. `info` has hostname, pid, queues, concurrency, versions …"""

    identity: str
    info: dict[str, Any]
    busy: int
    is_quiet: bool
    beat: float

    def quiet(self) -> bool:
        """Ask it to fetch no more; it hears that with its next beat. False where it is gone."""
        return get_store().signal(self.identity, "quiet")

    def resume(self) -> bool:
        """Ask a quiet worker to work again."""
        return get_store().signal(self.identity, "resume")

    def stop(self) -> bool:
        """Ask it to stop in good order. A later quiet or resume does not undo it."""
        return get_store().signal(self.identity, "stop")

    def ask_stacks(self) -> bool:
        """Ask where its running jobs are; `worker_stacks(identity)` has the answer soon."""
        from django_cogworker.api.stacks import ask_stacks

        return ask_stacks(self.identity)


def losses() -> list[dict[str, Any]]:
    """Worker processes that a supervisor lost, the newest first, at most a hundred.

    Each has `pid`, `identity`, `how` it ended, `at` (epoch seconds) and `lived` (seconds).
    """
    store = get_store()
    return records(store.recovering.losses(), _LOSS, store.keys.losses)


def _facts(identity: str, raw: bytes) -> dict[str, Any]:
    """What a worker says of itself, without what others wrote in its place."""
    told = record(raw)
    if told is None:
        tell_once(identity, raw)
        return {}
    odd = [name for name, fits in _FACTS.items() if name in told and not fits(told[name])]
    if odd:
        tell_once(identity, raw)
    return {name: value for name, value in told.items() if name not in odd}


class ProcessSet:
    """The workers that live. One round trip for the names, one for all of them.

    A name whose presence has expired is left out. It is not taken away here, since who looks changes nothing: the
    workers' upkeep does that. Of one whose facts cannot be read none are shown.
    """

    def __iter__(self) -> Iterator[Process]:
        store = get_store()
        names: Any = store.client.smembers(store.keys.processes)
        identities = sorted(text(each) for each in names)
        pipe = store.client.pipeline(transaction=False)
        for each in identities:
            pipe.hmget(store.keys.process(each), "info", "busy", "quiet", "beat")
        for identity, (info, busy, quiet, beat) in zip(identities, pipe.execute(), strict=True):
            if info is not None:
                facts, at_work = _facts(identity, info), int(number_in(busy, int))
                yield Process(identity, facts, at_work, quiet == b"true", number_in(beat))

    def __len__(self) -> int:
        return sum(1 for _ in self)
