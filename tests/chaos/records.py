"""What was written down during a trial, as plain values: the ledger's input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Outcome = Literal["accepted", "refused", "maybe"]


@dataclass
class Push:
    """One job that somebody tried to push; `maybe` where the error was ambiguous."""

    name: str
    kind: str
    outcome: Outcome = "maybe"
    jid: str = ""


@dataclass
class Run:
    """One start of `perform`, and its end where it came to one."""

    run: str
    name: str
    pid: int
    attempt: int
    jid: str
    start: float
    end: float | None = None
    good: bool = False


@dataclass
class Life:
    """One worker process: surely alive up to `last_alive`, surely dead from `dead` on."""

    pid: int
    slot: str
    born: float
    last_alive: float
    dead: float | None = None
    #: When it was asked to stop, or lost its supervisor.
    stopped: float | None = None


@dataclass
class Burial:
    """A worker was taken for dead: its tombstone was not there at `before` and was at `after`."""

    pid: int
    before: float
    after: float


@dataclass
class Disturbance:
    """Somebody could not talk to Redis; `slot` is empty where that holds for all, `pid` is 0 where it
    holds for a whole slot. `rest` seconds later at the latest all is well again.
    """

    kind: str
    slot: str
    pid: int
    begin: float
    end: float
    rest: float = 0.0


@dataclass
class Grave:
    """One member of the dead set."""

    name: str
    error: str
    message: str


@dataclass
class Records:
    """All that the verdict needs."""

    pushes: dict[str, Push] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    graves: list[Grave] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    burials: list[Burial] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)

    def life_of(self, run: Run) -> Life | None:
        """The worker of a run; a pid may have been used twice."""
        found = [each for each in self.lives if each.pid == run.pid and each.born <= run.start]
        return max(found, key=lambda each: each.born, default=None)


def whole_lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def read_runs(lines: Iterable[str]) -> list[Run]:
    """From the journal of the jobs."""
    runs: dict[str, Run] = {}
    for line in lines:
        word, at, run, *rest = line.split(" ")
        if word == "start":
            name, pid, attempt, jid = rest
            runs[run] = Run(run, name, int(pid), int(attempt), jid, float(at))
        else:
            runs[run].end, runs[run].good = float(at), rest[0] == "ok"
    return list(runs.values())


def read_pushes(lines: Iterable[str]) -> dict[str, Push]:
    """From the journals of the pushers. What has no outcome is a `maybe`: the pusher died over it."""
    pushes: dict[str, Push] = {}
    for line in lines:
        word, name, detail = line.split(" ")
        if word == "push":
            pushes[name] = Push(name, detail)
        else:
            pushes[name].outcome = _OUTCOMES[word]
            pushes[name].jid = detail if word == "accepted" else ""
    return pushes


_OUTCOMES: dict[str, Outcome] = {"accepted": "accepted", "refused": "refused", "maybe": "maybe"}
