"""The upkeep: once a minute, what should never be needed.

Keys of the wrong type are put into quarantine, names of workers that are gone are taken away, and strays are brought to
their place. An error that
says "wrong type" has it look at once, so that what such a key holds up goes on within seconds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import redis

from django_cogworker.conf import Config
from django_cogworker.features import registry as features
from django_cogworker.store.store import Store
from django_cogworker.worker.identity import Membership, host_facts
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.strays import Strays

logger = logging.getLogger("django_cogworker")

#: Seconds between rounds, and at the least between two looks for the sake of an error.
INTERVAL = 60.0
SOONEST = 1.0
TURN = 5.0


class Upkeep:
    """The one of a worker."""

    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        membership: Membership,
        outage: Outage,
        strays: Strays,
        turned: Callable[[], None],
        keep: Callable[[], None],
    ) -> None:
        """`keep` is called each round: what tells that this worker's file is in use."""
        self._store = store
        self._membership = membership
        self._outage = outage
        self._strays = strays
        self._turned = turned
        self._keep = keep
        self._queues = config.read_queues
        self._key_hooks = features.taking_part("known_keys")
        self._host = host_facts().get("host_id", "")
        #: Who judges the dead sooner looks after the living sooner too.
        self._interval = min(INTERVAL, config.orphan_threshold)
        self._next_round = 0.0
        self._suspicious = False
        self._wake = threading.Event()
        self._ended = False

    def suspect(self) -> None:
        """An error said that some key has the wrong type: look soon."""
        self._suspicious = True
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    def loop(self) -> None:
        """The thread's body."""
        while not self._ended:
            self._turned()
            try:
                self._look()
            except (redis.RedisError, OSError) as error:
                self._outage.failed("The upkeep", error)
            self._wake.wait(min(TURN, max(SOONEST, self._next_round - time.monotonic())))
            if self._wake.is_set() and not self._ended:
                self._wake.clear()
                threading.Event().wait(SOONEST)

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._next_round and not self._suspicious:
            return
        self._suspicious = False
        self.put_away_misplaced()
        if now >= self._next_round:
            self._next_round = now + self._interval
            self._keep()
            self._strays.look()
            self._store.recovering.forget_absent()

    def put_away_misplaced(self) -> int:
        """Put keys of the wrong type into quarantine; how many."""
        quarantine = self._store.quarantine
        found = quarantine.look(
            self._queues, self._membership.identity, self._host, self._keys_of_features()
        )
        count = 0
        for each in found:
            name = quarantine.put_away(each)
            if name is not None:
                count += 1
                logger.error(
                    "The key %s was a %s and should be a %s; what it held lies in %s for 30 days.",
                    each.key,
                    each.found,
                    each.wanted,
                    name,
                )
        return count

    def _keys_of_features(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for hook in self._key_hooks:
            try:
                found.update(hook())
            except Exception:
                logger.exception("A feature failed to name its keys.")
        return found
