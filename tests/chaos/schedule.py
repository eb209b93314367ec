"""What is done when: a pure function of seed and length, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Seconds of silence after which a worker of the trial counts as dead; so it beats each second.
ORPHAN_THRESHOLD = 6.0
#: Shorter than the longest job, so that a stop interrupts some.
SHUTDOWN_TIMEOUT = 1.0

#: The workers on their own, each replaced when it dies. The second one's line can be disturbed.
DIRECT, PROXIED, SUPERVISED = "direct", "proxied", "supervised"
CHILDREN = ("child 0", "child 1")
PUSHER_LINE = "pusher line"
WORKER_LINE = "worker line"

WRONG_TYPE = "wrong type"
#: What somebody else's value is put in the place of, without the prefix.
KEYS = (
    "dead",
    "retry",
    "schedule",
    "stats:processed",
    "queue:default",
    "queue:low",
    "queue:low:priority",
    "queue:default:tokens",
    "queues",
    "paused_queues",
    "beats",
    "members",
    "processes",
    "holders",
)


@dataclass(frozen=True)
class Fault:
    """`kind` happens to `target`, `at` so many seconds after the begin, for `seconds`."""

    at: float
    kind: str
    target: str
    seconds: float = 0.0
    amount: float = 0.0


Draw = Callable[[random.Random], float]


def between(low: float, high: float) -> Draw:
    return lambda draw: round(draw.uniform(low, high), 2)


def short_or_long(low: float, high: float, long_low: float, long_high: float) -> Draw:
    """Mostly shorter than the threshold, each fourth time longer."""

    def seconds(draw: random.Random) -> float:
        bounds = (long_low, long_high) if draw.random() < 0.25 else (low, high)
        return round(draw.uniform(*bounds), 2)

    return seconds


def none(draw: random.Random) -> float:
    return 0.0


@dataclass(frozen=True)
class Kind:
    """A kind of fault: whom it may strike, for how long, how often in one deck, with what amount."""

    name: str
    targets: tuple[str, ...]
    seconds: Draw = none
    times: int = 1
    amount: Draw = none


LINES = (WORKER_LINE, WORKER_LINE, PUSHER_LINE)

DECK = (
    Kind("worker killed", (DIRECT, PROXIED, *CHILDREN), between(0.1, 2.0), 3),
    Kind("supervisor killed", (SUPERVISED,), between(0.1, 1.0)),
    Kind("worker stopped", (DIRECT, PROXIED, SUPERVISED), between(0.1, 1.0)),
    Kind("worker frozen", (DIRECT, PROXIED, *CHILDREN), short_or_long(0.5, 3, 9, 12), 3),
    Kind("redis killed", ("redis",), short_or_long(0.1, 2.5, 8, 10), 2),
    Kind("redis frozen", ("redis",), short_or_long(0.3, 3, 8, 10)),
    Kind("redis full", ("redis",), between(2, 4)),
    Kind("scripts flushed", ("redis",)),
    Kind("connections cut", LINES),
    Kind("no connections", LINES, short_or_long(0.5, 3, 8, 10)),
    Kind("half-open connections", LINES, short_or_long(0.5, 4, 8, 11)),
    Kind("replies late", LINES, between(2, 5), amount=between(0.05, 0.5)),
    Kind("requests lost", LINES, between(2, 5), amount=between(0, 1)),
    # Both in each deck: a push and an exchange are made safe against this in different ways.
    Kind("replies lost", (WORKER_LINE,), between(2, 5), amount=between(0, 1)),
    Kind("replies lost", (PUSHER_LINE,), between(2, 5), amount=between(0, 1)),
    Kind(WRONG_TYPE, KEYS, between(1, 3), 6),
)
NAMES = tuple(dict.fromkeys(each.name for each in DECK))
#: Seconds that a target is left alone after a fault, and between two faults.
REST = 2.0
PAUSE = (0.8, 2.4)


def struck_with(target: str) -> str:
    """Targets that stand or fall together share a name here."""
    return SUPERVISED if target in CHILDREN else target


def cards(draw: random.Random) -> Iterator[Kind]:
    """Kinds without end; each deck has every kind, so that a short run has them all."""
    while True:
        deck = [kind for kind in DECK for _ in range(kind.times)]
        draw.shuffle(deck)
        yield from deck


def plan(seed: int, length: float) -> tuple[Fault, ...]:
    """The faults of a run of `length` seconds, in order of their begin; all end within it."""
    draw = random.Random(seed)
    free_at: dict[str, float] = {}
    faults: list[Fault] = []
    now = 2.0
    for kind in cards(draw):
        target = draw.choice(kind.targets)
        seconds, amount = kind.seconds(draw), kind.amount(draw)
        now = round(now + draw.uniform(*PAUSE), 2)
        if now >= length:
            return tuple(sorted(faults, key=lambda each: each.at))
        at = max(now, free_at.get(struck_with(target), 0.0))
        if at + seconds > length:
            continue
        free_at[struck_with(target)] = round(at + seconds + REST, 2)
        faults.append(Fault(at, kind.name, target, seconds, amount))
    raise AssertionError("the cards have no end")
