"""The sizes that are searched: small ones by the tests, large ones by `python -m tests.model`.

No size has everything: the number of states grows with the product of all faults. Each brings
together what could conspire.
"""

from __future__ import annotations

import dataclasses

from tests.model.rules import Rules, Size

TODAY = Rules()


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    name: str
    size: Size
    #: A search that visits fewer states has missed something.
    at_least: int
    rules: Rules = TODAY


SMALL = (
    Case(
        "two pushes, two losses",
        Size(jobs=2, pushed=0, workers=1, client_losses=2),
        2_000,
    ),
    Case(
        "a push on the way beside a false verdict",
        Size(jobs=2, client_losses=1, verdicts=1, all_may_fail=False),
        25_000,
    ),
    Case(
        "two losses and a stop",
        Size(losses=2, stops=1, all_may_fail=False),
        10_000,
    ),
    Case(
        "two losses and a crash",
        Size(losses=2, crashes=1, all_may_fail=False),
        4_500,
    ),
    Case(
        "a loss, a crash and a stop, of any worker",
        Size(losses=1, crashes=1, stops=1),
        8_500,
    ),
    Case(
        "a loss, a stop and a failure, of any worker",
        Size(losses=1, stops=1, failures=1),
        20_000,
    ),
    Case(
        "a loss, a stop and a false verdict",
        Size(losses=1, stops=1, verdicts=1, all_may_fail=False),
        17_000,
    ),
    Case(
        "a loss, a crash and a false verdict, of any worker",
        Size(losses=1, crashes=1, verdicts=1),
        50_000,
    ),
    Case(
        "a failure, a crash and a false verdict",
        Size(failures=1, crashes=1, verdicts=1, all_may_fail=False),
        5_500,
    ),
    Case(
        "two jobs in one hand, a loss and a false verdict",
        Size(jobs=2, pushed=2, room=2, losses=1, verdicts=1, all_may_fail=False),
        23_000,
    ),
    Case(
        "two recoverers and two schedulers at the same",
        Size(twins=2, failures=1, verdicts=1, all_may_fail=False),
        10_000,
    ),
    Case(
        "at most once, a loss and a crash",
        Size(at_most_once=True, losses=1, crashes=1, failures=1),
        5_000,
    ),
    Case(
        "at most once, a loss, a crash and a false verdict",
        Size(at_most_once=True, losses=1, crashes=1, verdicts=1, all_may_fail=False),
        17_000,
    ),
    Case(
        "at most once, a stop and a false verdict",
        Size(at_most_once=True, stops=1, verdicts=1, all_may_fail=False),
        3_500,
    ),
)

LARGE = (
    Case(
        "a push on the way beside a loss and a crash",
        Size(jobs=2, client_losses=1, losses=1, crashes=1, all_may_fail=False),
        60_000,
    ),
    Case(
        "two jobs in one hand, a loss, a crash and a stop",
        Size(jobs=2, pushed=2, room=2, losses=1, crashes=1, stops=1, all_may_fail=False),
        30_000,
    ),
    Case(
        "two jobs in one hand, a loss, a failure and one given back",
        Size(jobs=2, pushed=2, room=2, losses=1, failures=1, returns=1),
        100_000,
    ),
    Case(
        "a loss, a stop, a crash and a false verdict",
        Size(losses=1, stops=1, crashes=1, verdicts=1, all_may_fail=False),
        10_000,
    ),
    Case(
        "two losses and a false verdict, of any worker",
        Size(losses=2, verdicts=1),
        50_000,
    ),
    Case(
        "two false verdicts and a loss",
        Size(losses=1, verdicts=2, all_may_fail=False),
        15_000,
    ),
    Case(
        "at most once, a loss, a stop and a false verdict",
        Size(at_most_once=True, losses=1, stops=1, verdicts=1, all_may_fail=False),
        50_000,
    ),
)
