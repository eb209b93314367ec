"""The toolkit for tests of jobs."""

from __future__ import annotations

import datetime
import unittest
from typing import Any, assert_type

from django_cogworker import Job, job
from django_cogworker.testing import (
    CogworkerTestCase,
    FrozenClock,
    Jobs,
    Ran,
    adrain_all,
    assert_num_jobs,
    collect,
    drain_all,
    fake,
    frozen,
)


class Remind(Job):
    def perform(self, order_id: int) -> None: ...


@job
def plain(a: int) -> int:
    return a


# What a fixture gives.
def test_jobs(jobs: Jobs) -> None:
    assert_type(jobs.waiting, list[dict[str, Any]])
    assert_type(jobs.dead, list[dict[str, Any]])
    assert_type(
        jobs.assert_enqueued(Remind, args=[1], at=datetime.datetime.now()), list[dict[str, Any]]
    )
    jobs.assert_enqueued(Remind, when=3)  # must fail
    jobs.assert_num_jobs(1, plain, queue="x")
    jobs.assert_num_jobs("one")  # must fail
    assert_type(jobs.drain(), int)
    assert_type(jobs.drain(Remind, run_twice=True, crash="everywhere", errors="record"), int)
    jobs.drain(crash="midway")  # must fail
    jobs.drain(crash="random", seed="x")  # must fail
    jobs.drain(thrice=True)  # must fail
    assert_type(jobs.run_due(errors="record"), list[Ran])
    jobs.pause(3)  # must fail
    with jobs.frozen("2026-03-29 01:59", tz="Europe/Paris", periodic=["x"], crash="after") as clock:
        assert_type(clock, FrozenClock)
        ran = clock.tick(hours=2)
        assert_type(ran, list[Ran])
        assert_type(ran[0].at, datetime.datetime)
        assert_type(clock.move_to(datetime.date(2026, 1, 1), down=True), list[Ran])
        assert_type(clock.now, datetime.datetime)
        clock.tick(weeks=1)  # must fail
        clock.move_to(None)  # must fail
    with jobs.frozen(tz=3):  # must fail
        pass
    with jobs.frozen(errors="raise"):  # must fail
        pass


class Case(CogworkerTestCase, unittest.TestCase):
    def test(self) -> None:
        assert_type(self.jobs, Jobs)
        assert_type(self.drain(Remind, run_twice=True), int)
        assert_type(self.assert_enqueued(Remind, count=1), list[dict[str, Any]])
        self.assert_not_enqueued(Remind, count=1)  # must fail

    async def test_coroutine(self) -> None:
        assert_type(await self.adrain(), int)
        assert_type(await self.jobs.adrain(crash="before"), int)
        assert_type(await Remind.adrain(run_twice=True), int)
        assert_type(await plain.adrain(), int)
        assert_type(await adrain_all(), int)
        with frozen(0.0) as clock:
            assert_type(await clock.atick(hours=1), list[Ran])


with collect() as collected:
    assert_type(collected, Jobs)
with fake() as transport:
    assert_type(transport.drain(errors="record"), int)
    assert_type(Remind.drain(crash="before"), int)
    Remind.drain(crash=1)  # must fail
    plain.drain(run_twice="x")  # must fail
    assert_type(drain_all(run_twice=True), int)
    assert_num_jobs(1)
