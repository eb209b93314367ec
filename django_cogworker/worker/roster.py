"""The roster: which job classes a worker knows, for those who ask why a job is not running.

The names would make each beat long. So a beat has a digest of them alone, and the names lie in a hash of that
digest, which all workers of the same code share: one a release. Whoever beats renews it long before it ends.
"""

from __future__ import annotations

import hashlib
import time

from django_cogworker.jobs import registry
from django_cogworker.store.store import Store
from django_cogworker.store.values import Effect

#: Seconds that the names are kept, and between the moments when a worker writes them anew.
TTL = 86_400
INTERVAL = 600.0
#: Names in one effect; a script takes some thousands at the most.
BATCH = 1_000


class Roster:
    """One worker's. Used by the heartbeat's thread alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: tuple[str, ...] = ()
        self._digest = ""
        self._told_at = 0.0

    @property
    def digest(self) -> str:
        """16 hex characters. A module that was loaded late may have brought further classes."""
        names = tuple(sorted(registry.names()))
        if names != self._names or not self._digest:
            self._names, self._told_at = names, 0.0
            text = "\n".join(names).encode("utf-8", "backslashreplace")
            self._digest = hashlib.sha256(text).hexdigest()[:16]
        return self._digest

    def tell(self) -> None:
        """Write the names where that was not done for a while. Raises redis-py's errors."""
        now = time.monotonic()
        if self._told_at and now - self._told_at < INTERVAL:
            return
        key = self._store.keys.classes(self._digest)
        effects = []
        for begin in range(0, len(self._names), BATCH):
            names = self._names[begin : begin + BATCH]
            pairs = [text for each in names for text in (each, "1")]
            effects.append(Effect("hset", key, tuple(pairs)))
        self._store.apply([*effects, Effect("expire", key, (TTL,))])
        self._told_at = now
