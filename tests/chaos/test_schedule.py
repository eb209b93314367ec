"""The plan is a pure function of seed and length, and has what it should have."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import defaultdict

import pytest

from tests.chaos.schedule import NAMES, plan, struck_with
from tests.support.worker import ROOT

SAY = "import sys; from tests.chaos.schedule import plan; print(plan(int(sys.argv[1]), 120.0))"


def test_the_same_seed_gives_the_same_plan_also_in_another_process():
    said = [
        subprocess.run(
            [sys.executable, "-c", SAY, "7"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert said == [str(plan(7, 120.0))] * 2


def test_another_seed_gives_another_plan():
    assert plan(7, 120.0) != plan(8, 120.0)


@pytest.mark.parametrize("seed", range(20))
def test_two_minutes_have_every_kind_of_fault(seed):
    assert {each.kind for each in plan(seed, 120.0)} == set(NAMES)


@pytest.mark.parametrize("seed", range(20))
def test_faults_end_in_time_and_leave_their_target_alone_afterwards(seed):
    faults = plan(seed, 300.0)
    assert all(each.at + each.seconds <= 300 for each in faults)
    assert [each.at for each in faults] == sorted(each.at for each in faults)
    by_target = defaultdict(list)
    for each in faults:
        by_target[struck_with(each.target)].append(each)
    for struck in by_target.values():
        for earlier, later in itertools.pairwise(struck):
            assert later.at > earlier.at + earlier.seconds + 1


def test_a_plan_can_be_written_down():
    assert json.dumps([vars(each) for each in plan(1, 60.0)])
