"""Strays: jobs that are in progress under this worker's name and that nobody here runs.

The worker's memory says what it runs, Redis what it holds, and by tickets the two agree also after lost
replies. Should they ever not, a job would wait for the death of this worker. So the two are compared
now and then, and what is astray at two looks in a row goes where the one rule wants it: a job that no
processor has taken back to its queue, one that may have run to the retrying set, with an error.
"""

from __future__ import annotations

import logging

from django_cogworker.exceptions import JobOrphanedError
from django_cogworker.store.store import Store
from django_cogworker.store.values import Held
from django_cogworker.worker import settlement
from django_cogworker.worker.fetch.fetcher import Fetcher
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.identity import Membership

logger = logging.getLogger("django_cogworker")


#: Jobs that one look reads, the newest first; a worker holds fewer.
MOST = 2000


class Strays:
    """Those of one worker."""

    def __init__(self, *, store: Store, fetcher: Fetcher, membership: Membership) -> None:
        self._store = store
        self._fetcher = fetcher
        self._membership = membership
        self._before: set[tuple[str, int]] = set()

    def look(self) -> int:
        """One look; how many strays were brought to their place. Raises redis-py's errors."""
        identity = self._membership.identity
        if not self._store.reliable:
            return 0
        strangers = {
            each.ticket: each
            for each in self._store.recovering.held_by(identity, MOST)
            if each.ticket not in self._fetcher.held
        }
        forgotten = self._forgotten()
        now = {(identity, each) for each in (*forgotten, *strangers)}
        twice = sorted((ticket for _, ticket in now & self._before), reverse=True)
        self._before = now
        for ticket in twice:
            if ticket in forgotten:
                self._bring_home(forgotten[ticket])
            elif not strangers[
                ticket
            ].has_run:  # else recovery knows better, when this worker has ended
                self._send_back(identity, strangers[ticket])
        return len(twice)

    def _forgotten(self) -> dict[int, Unit]:
        """What the fetcher holds, no processor has, and nobody has settled."""
        return {
            ticket: unit
            for ticket, unit in list(self._fetcher.held.items())
            if not self._fetcher.is_in_hand(ticket) and not self._fetcher.is_ended(ticket)
        }

    def _send_back(self, identity: str, held: Held) -> None:
        logger.error(
            "A job on queue %s was in progress here and nobody ran it; it goes back.", held.queue
        )
        self._fetcher.give_back_stray(Unit(held.ticket, identity, held.queue, held.payload, 0))

    def _bring_home(self, unit: Unit) -> None:
        job = unit.job or {}
        logger.error(
            "Job %s on queue %s was taken here and nobody runs it.", job.get("jid"), unit.queue
        )
        if unit.job is None:
            self._fetcher.settle(unit, settlement.given_back(unit))
        else:
            error = JobOrphanedError("Its worker lost sight of the job, which may have run.")
            self._fetcher.settle(unit, settlement.after_a_fault(unit, error))
