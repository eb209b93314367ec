"""The inline transport: each job runs at once in the caller; its delay is ignored and its error
reaches the caller.

No retries, no dead set, no counters. It does not wait for a commit: the caller's transaction is the
one the job runs in.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_cogworker.store.values import Outgoing, Refusal
from django_cogworker.testing.running import run_here


class InlineTransport:
    """Runs jobs."""

    waits_for_commit = False

    def push(self, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        for each in jobs:
            run_here(each.payload)
        return [None] * len(jobs)


_by_setting = InlineTransport()


def the_transport() -> InlineTransport:
    return _by_setting
