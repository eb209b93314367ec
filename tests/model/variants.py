"""Rules broken on purpose, each with the harm that the search finds then.

A row is a switch turned off, the smallest size that shows the harm, and which invariant breaks. The
tombstone has a second row: what comes of the broken rule, if one looks away from the rule itself.
"""

from __future__ import annotations

import dataclasses

from tests.model import invariants
from tests.model.rules import Rules, Size


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    name: str
    rules: Rules
    size: Size
    harm: str
    blind_to: tuple[str, ...] = ()


VARIANTS = (
    Variant(
        "without tombstones a worker that was buried is granted jobs",
        Rules(tombstones=False),
        Size(losses=1, verdicts=1),
        invariants.GRANTED_TO_THE_GONE,
    ),
    Variant(
        "without tombstones a late owner acknowledges what it never ran",
        Rules(tombstones=False),
        Size(jobs=2, pushed=2, losses=1, verdicts=1, all_may_fail=False),
        invariants.SETTLED_UNSTARTED,
        (invariants.GRANTED_TO_THE_GONE,),
    ),
    Variant(
        "a repeat that does not honour its tickets strands a job",
        Rules(repeats_honoured=False),
        Size(losses=1),
        invariants.STRANDED,
    ),
    Variant(
        "a repeat that does not honour its tickets overwrites a job",
        Rules(repeats_honoured=False),
        Size(jobs=2, pushed=2, losses=1),
        invariants.LOST,
    ),
    Variant(
        "settling without a look at the ticket doubles a job",
        Rules(settle_by_ticket=False),
        Size(losses=1, returns=1),
        invariants.DOUBLED,
    ),
    Variant(
        "fetching in two steps loses a job",
        Rules(fetch_in_one_step=False),
        Size(crashes=1),
        invariants.LOST,
    ),
    Variant(
        "a job that is given back and taken all the same runs with a stranger",
        Rules(hand_decides=False),
        Size(returns=1),
        invariants.STARTED_BY_A_STRANGER,
    ),
    Variant(
        "without the lane's memory a repeated push is there twice",
        Rules(lane_memory=False),
        Size(pushed=0, workers=1, client_losses=1),
        invariants.PUSHED_TWICE,
    ),
    Variant(
        "two pushes under one number are taken for one",
        Rules(pushes_numbered=False),
        Size(jobs=2, pushed=0, workers=1),
        invariants.NOT_WRITTEN,
    ),
    Variant(
        "on a lane used again after doubt a late push is there twice",
        Rules(lanes_thrown_away=False),
        Size(jobs=2, pushed=0, workers=1, client_losses=1),
        invariants.PUSHED_TWICE,
    ),
    Variant(
        "leaving while holding jobs strands them",
        Rules(leave_keeps_holders=False),
        Size(losses=1, stops=1),
        invariants.STRANDED,
    ),
    Variant(
        "recovering in two steps brings back what was done",
        Rules(recover_in_one_step=False),
        Size(verdicts=1),
        invariants.DOUBLED,
    ),
    Variant(
        "recovering in two steps doubles what two recoverers found",
        Rules(recover_in_one_step=False),
        Size(crashes=1, twins=2),
        invariants.DOUBLED,
    ),
    Variant(
        "moving due jobs without a look doubles what two schedulers saw",
        Rules(graduate_asks=False),
        Size(failures=1, twins=2),
        invariants.DOUBLED,
    ),
    Variant(
        "marking a start without a look at the ticket starts twice",
        Rules(mark_asks=False),
        Size(at_most_once=True, verdicts=1),
        invariants.MORE_THAN_ONCE,
    ),
    Variant(
        "recovering without a look at the mark starts twice what began meanwhile",
        Rules(recover_compares_mark=False),
        Size(at_most_once=True, verdicts=1),
        invariants.MORE_THAN_ONCE,
    ),
    Variant(
        "a processor that does not ask starts what the stop has given back",
        Rules(given_up_is_not_started=False),
        Size(at_most_once=True, stops=1),
        invariants.MORE_THAN_ONCE,
    ),
)
