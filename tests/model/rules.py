"""The rules of the protocol as switches, and the size of a search.

As they come they say what the code does. Each switch that is on can be turned off: a mistake that
one could make, and `variants` shows what it would cost.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What the scripts, the clients and the workers abide by."""

    #: exchange.lua does nothing for an identity with a tombstone.
    tombstones: bool = True
    #: exchange.lua hands out again what tickets from `first` on hold already.
    repeats_honoured: bool = True
    #: exchange.lua settles only a ticket that the hash really holds.
    settle_by_ticket: bool = True
    #: exchange.lua writes a fetched job into the hash in the step that takes it from its queue.
    fetch_in_one_step: bool = True
    #: push.lua keeps number and result of the last push of a lane.
    lane_memory: bool = True
    #: Each push has a number of its own on its lane; lanes copied by a fork would not.
    pushes_numbered: bool = True
    #: A client uses a lane no more after an ambiguous end.
    lanes_thrown_away: bool = True
    #: leave.lua lets the registration stand while the hash holds jobs.
    leave_keeps_holders: bool = True
    #: recover.lua judges and moves in one step, and moves only what is still there.
    recover_in_one_step: bool = True
    #: graduate.lua asks whether the job is still in the set.
    graduate_asks: bool = True
    #: What the fetcher has withdrawn from the hand no processor can take.
    hand_decides: bool = True
    #: mark_started.lua asks whether the ticket is still held.
    mark_asks: bool = True
    #: recover.lua moves a job only if it is marked as started or not, as the recoverer read it.
    recover_compares_mark: bool = True
    #: A processor starts no job that the stop has settled over its head.
    given_up_is_not_started: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How many of everything. The faults are the most that one history may have."""

    jobs: int = 1
    #: Jobs that lie on the queue at the start; the client pushes the others.
    pushed: int = 1
    at_most_once: bool = False
    workers: int = 2
    #: The most jobs that a worker holds; it has one processor.
    room: int = 1
    #: So many looks at the same thing may be under way at once (recoveries, moves of due jobs).
    twins: int = 1
    #: Whether faults may hit every worker, or only the first.
    all_may_fail: bool = True

    crashes: int = 0
    losses: int = 0
    client_losses: int = 0
    verdicts: int = 0
    failures: int = 0
    stops: int = 0
    returns: int = 0
