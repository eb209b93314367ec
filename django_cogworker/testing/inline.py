"""The inline transport: each job runs at once in the caller; its delay is ignored and its error
reaches the caller.

No retries, no dead set, no counters. It does not wait for a commit: the caller's transaction is the
one the job runs in.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_cogworker.store.values import Outgoing, Refusal
from django_cogworker.testing.claims import Claims
from django_cogworker.testing.running import run_here


class InlineTransport:
    """Runs jobs."""

    waits_for_commit = False

    def __init__(self) -> None:
        self._claims = Claims()

    def push(self, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        return [self._run(each) for each in jobs]

    def _run(self, job: Outgoing) -> Refusal | None:
        refusal, _ = self._claims.claim(job)
        if refusal is not None:
            return refusal
        self._claims.starts(job)
        try:
            run_here(job.payload)
        finally:
            self._claims.ends(job)
        return None


_by_setting = InlineTransport()


def the_transport() -> InlineTransport:
    return _by_setting
