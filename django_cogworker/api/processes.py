"""Workers that live: what they say of themselves, and commands for them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store


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
    return [json.loads(each) for each in get_store().recovering.losses()]


class ProcessSet:
    """The workers that live. One round trip for the names, one for all of them.

    A name whose presence has expired is left out. It is not taken away here, since who looks changes nothing: the
    workers' upkeep does that.
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
                yield Process(
                    identity, json.loads(info), int(busy or 0), quiet == b"true", float(beat or 0)
                )

    def __len__(self) -> int:
        return sum(1 for _ in self)
