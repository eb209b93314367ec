"""Floor 7: test modes. Nothing here touches Redis.

    with fake():                      # jobs are collected, nothing runs
        SendReceipt.perform_async(42)
        assert_enqueued(SendReceipt, args=(42,))
        SendReceipt.drain()           # run them here and now

    with inline():                    # jobs run at once in the caller; their errors reach it
        SendReceipt.perform_async(42)

    with collect() as jobs:           # fake, with a clock to move: scheduled, retried, periodic
        with jobs.frozen("2026-03-29 01:59", tz="Europe/Paris") as clock:
            clock.tick(hours=2)

`CogworkerTestCase` does the same for a class of tests, the fixture `jobs` of the pytest plugin for a test.

The same by setting: `override_settings(COGWORKER_TESTING="fake")`. Jobs are encoded and decoded as
in production, run in the caller's thread and transaction, and what waits for a commit that a
`TestCase` never makes is seen as well.
"""

from __future__ import annotations

from django_cogworker.testing.assertions import (
    assert_enqueued,
    assert_not_enqueued,
    assert_num_jobs,
)
from django_cogworker.testing.case import CogworkerTestCase
from django_cogworker.testing.frozen import FrozenClock
from django_cogworker.testing.held import Ran
from django_cogworker.testing.modes import (
    adrain_all,
    clear_all,
    collect,
    disabled,
    drain_all,
    fake,
    frozen,
    inline,
)
from django_cogworker.testing.toolkit import Jobs

__all__ = [
    "CogworkerTestCase",
    "FrozenClock",
    "Jobs",
    "Ran",
    "adrain_all",
    "assert_enqueued",
    "assert_not_enqueued",
    "assert_num_jobs",
    "clear_all",
    "collect",
    "disabled",
    "drain_all",
    "fake",
    "frozen",
    "inline",
]
