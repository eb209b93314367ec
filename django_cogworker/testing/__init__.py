"""Floor 7: test modes. Nothing here touches Redis.

    with fake():                      # jobs are collected, nothing runs
        SendReceipt.perform_async(42)
        assert_enqueued(SendReceipt, args=(42,))
        SendReceipt.drain()           # run them here and now

    with inline():                    # jobs run at once in the caller; their errors reach it
        SendReceipt.perform_async(42)

The same by setting: `override_settings(COGWORKER_TESTING="fake")`. Jobs are encoded and decoded as
in production, run in the caller's thread and transaction, and what waits for a commit that a
`TestCase` never makes is seen as well.
"""

from __future__ import annotations

from django_cogworker.testing.assertions import assert_enqueued, assert_not_enqueued
from django_cogworker.testing.modes import clear_all, disabled, drain_all, fake, inline

__all__ = [
    "assert_enqueued",
    "assert_not_enqueued",
    "clear_all",
    "disabled",
    "drain_all",
    "fake",
    "inline",
]
