"""The claims of jobs in a test mode, in memory: what the guards of a push do in Redis.

`claim` and `take` count; a guard that `rises` is for those who look at a clock, and always lets through. A
claim is freed when its job starts or has run, as the guard says, or is forgotten; and it ends with its TTL, by the
clock of jobs. Nobody extends the claim of a job that runs: no time that counts passes meanwhile.
"""

from __future__ import annotations

import threading

from django_cogworker import clock
from django_cogworker.store.values import Outgoing, Refusal


class Claims:
    """Who has what. Thread-safe."""

    def __init__(self) -> None:
        self._owners: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def claim(self, job: Outgoing) -> tuple[Refusal | None, set[str]]:
        """Claim all guards of the job or none. The refusal, and the jids from which something was taken."""
        guards = [each for each in job.guards if each.kind != "rises"]
        ousted: set[str] = set()
        now = clock.now()
        with self._lock:
            for each in guards:
                had, until = self._owners.get(each.key, ("", 0.0))
                if had in ("", each.owner) or until <= now:
                    continue
                if each.kind == "claim":
                    return Refusal(f"duplicate {had}"), set()
                ousted.add(had)
            self._owners.update({each.key: (each.owner, now + each.ttl) for each in guards})
        return None, ousted

    def copy(self) -> Claims:
        """To try out what would become of further jobs."""
        copy = Claims()
        with self._lock:
            copy._owners = dict(self._owners)
        return copy

    def waits(self, job: Outgoing, delay: float) -> None:
        """The job is tried again in so many seconds: what it still has it keeps for that long, too."""
        with self._lock:
            for each in job.guards:
                owner, until = self._owners.get(each.key, ("", 0.0))
                if owner == each.owner:
                    kept = clock.now() + delay + each.ttl
                    self._owners[each.key] = (owner, max(until, kept))

    def starts(self, job: Outgoing) -> None:
        """Free what is to be had until the start only."""
        self._free(job, only_those_until_the_start=True)

    def ends(self, job: Outgoing) -> None:
        """Free all that the job still has."""
        self._free(job, only_those_until_the_start=False)

    def _free(self, job: Outgoing, *, only_those_until_the_start: bool) -> None:
        with self._lock:
            for each in job.guards:
                if only_those_until_the_start and each.through_run:
                    continue
                if self._owners.get(each.key, ("", 0.0))[0] == each.owner:
                    del self._owners[each.key]
