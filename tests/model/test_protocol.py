"""The protocol loses no job, doubles none and strands none, in any order of events; and each of its
rules is needed for that.

Each search visits every state that can be reached with so many jobs and faults. See `tests/model`.
"""

from __future__ import annotations

import pytest

from tests.model import invariants
from tests.model.explore import explore
from tests.model.invariants import broken, ended
from tests.model.processors import start
from tests.model.rules import Size
from tests.model.sizes import SMALL, TODAY, Case
from tests.model.states import Entry, Identity, Run, State, Worker
from tests.model.steps import beginning
from tests.model.variants import VARIANTS, Variant


@pytest.mark.timeout(300)  # seconds of work, on a machine that may be busy
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_no_state_breaks_an_invariant_and_from_each_an_end_can_be_reached(case: Case):
    result = explore(case.rules, case.size)
    assert not result.harm, str(result)
    assert result.states >= case.at_least
    print(result)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_each_rule_is_needed(variant: Variant):
    """By today's rules the same size comes to no harm; with one rule less it does."""
    assert not explore(TODAY, variant.size).harm
    result = explore(variant.rules, variant.size, variant.blind_to)
    print(result)
    assert result.harm == variant.harm
    assert 0 < len(result.trace) <= 20


# --- the invariants themselves ---------------------------------------------------------------------


def with_entries(*entries: Entry, queue: tuple[int, ...] = ()) -> State:
    state = beginning(Size())
    identities = (Identity(entries, 2, True), state.redis.identities[1])
    return state._replace(redis=state.redis._replace(queue=queue, identities=identities))


def test_a_job_in_no_place_and_a_job_in_two_are_noticed():
    assert broken(with_entries(Entry(1, 0))) == ""
    assert broken(with_entries()) == invariants.LOST
    assert broken(with_entries(Entry(1, 0), queue=(0,))) == invariants.DOUBLED


def test_a_second_start_in_one_stay_is_noticed():
    run = Run(0, 1, 0, "taken")
    state = with_entries(Entry(1, 0))
    state = state._replace(workers=(Worker(runs=(run,)), state.workers[1]))
    state = start(state, 0, run)
    assert broken(state) == ""
    assert broken(start(state, 0, run)) == invariants.STARTED_AGAIN


def test_the_beginning_is_no_end():
    assert not ended(beginning(Size()))
    assert ended(beginning(Size(jobs=0, pushed=0)))
