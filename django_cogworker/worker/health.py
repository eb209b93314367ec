"""Whether a worker is healthy: do its loops turn, and does it take jobs?

Each loop of a worker says at every turn that it turned. From that anybody can judge: **live** is a
worker all of whose loops have turned lately, **ready** one that has had a good beat and is not quiet.
Redis being away makes a worker neither dead nor stuck: its loops try again, and so they turn.

A `Report` is what one worker says of itself. It goes to the log when a loop is stuck (`watchdog`), to a
file for `cogworker healthcheck` (`health_file`), and to whoever asks over HTTP (`health_door`), where the
supervisor answers for all of its children. Times are monotonic; all processes of a machine share that
clock.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

#: A loop that has not turned for so many seconds is stuck. The longest turn in good order is a call to a
#: Redis that does not answer, about ten seconds.
STALE = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """One worker; `loops` has the time of each loop's last turn."""

    pid: int
    identity: str
    ready: bool
    loops: dict[str, float]

    def stuck(self, limit: float, now: float) -> list[str]:
        """The loops that have not turned for longer than `limit` seconds."""
        return sorted(name for name, turned in self.loops.items() if now - turned > limit)

    @classmethod
    def read(cls, words: Any) -> Report:
        """From what `dataclasses.asdict` gave. Raises `KeyError`, `TypeError` or `ValueError` for what
        is none.
        """
        return cls(
            int(words["pid"]),
            str(words["identity"]),
            bool(words["ready"]),
            {str(name): float(turned) for name, turned in dict(words["loops"]).items()},
        )


class Health:
    """The loops of this worker, and when each of them turned last. Shared by all its threads."""

    def __init__(self, identity: Callable[[], str], is_ready: Callable[[], bool]) -> None:
        self._identity = identity
        self._is_ready = is_ready
        self._turned: dict[str, float] = {}

    def loop(self, name: str) -> Callable[[], None]:
        """What that loop is to call at every turn. It counts from its first turn on."""

        def turned() -> None:
            self._turned[name] = time.monotonic()

        return turned

    def ended(self, name: str) -> None:
        """That loop turns no more, as it should."""
        self._turned.pop(name, None)

    def report(self) -> Report:
        return Report(os.getpid(), self._identity(), self._is_ready(), dict(self._turned))


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe wants to know, and of each worker why."""

    live: bool
    ready: bool
    workers: list[dict[str, Any]]


def judge(reports: Sequence[Report | None], *, limit: float = STALE) -> Verdict:
    """Judge workers together; `None` stands for a place whose worker is about to be started, which
    makes nobody ill, but is not ready.
    """
    now = time.monotonic()
    workers: list[dict[str, Any]] = []
    for each in reports:
        if each is None:
            workers.append({"pid": None, "live": True, "ready": False})
            continue
        stuck = each.stuck(limit, now)
        row = {"pid": each.pid, "identity": each.identity, "live": not stuck, "ready": each.ready}
        if stuck:
            row["stuck"] = {name: round(now - each.loops[name], 1) for name in stuck}
        workers.append(row)
    return Verdict(
        all(each["live"] for each in workers),
        all(each["ready"] and each["live"] for each in workers),
        workers,
    )
