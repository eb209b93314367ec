"""The heartbeat: says every five seconds that this worker lives, and hears what was asked of it.

The first beat comes before the first fetch: who holds jobs is known to live. Remote commands
(`quiet`, `resume`, `stop`) are kept in Redis for a minute and come with the answer to a beat, so a
short outage loses none.
"""

from __future__ import annotations

import json
import logging
import platform
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import django
import redis

from django_cogworker import __version__
from django_cogworker.conf import Config
from django_cogworker.features import registry as features
from django_cogworker.store.store import Store
from django_cogworker.store.values import FLEET_GAP, Beat
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.identity import Membership, host_facts, memory_kb
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.roster import Roster

logger = logging.getLogger("django_cogworker")

#: Seconds between beats, and between tries of a beat that failed.
INTERVAL = 5.0
AGAIN = 1.0
#: A worker without a good beat for (orphan threshold - this) seconds starts no further job.
CAUTION = 10.0
#: With a short threshold all of these shrink, so that several beats fit into it.
BEATS_PER_THRESHOLD = 6


class Heartbeat:
    """The beats of one worker."""

    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        membership: Membership,
        outage: Outage,
        turned: Callable[[], None],
        bulletin: Bulletin,
        started_file: str,
        busy: Callable[[], int],
        async_busy: Callable[[], int],
        command: Callable[[str], None],
        supervisor: int | None = None,
    ) -> None:
        """`started_file`: where this worker notes what it runs; `busy` counts running jobs, `async_busy` those
        of them that run on the event loop; `command` hears each remote command once; `supervisor`:
        its pid, where there is one.
        """
        self._store = store
        self._membership = membership
        membership.renewed = self.now
        self._outage = outage
        self._busy = busy
        self._async_busy = async_busy
        self._roster = Roster(store)
        self._command = command
        self._turned = turned
        self._bulletin = bulletin
        self._queues = config.read_queues
        self._started_at = round(time.time(), 3)
        threshold = config.orphan_threshold
        self._interval = min(INTERVAL, threshold / BEATS_PER_THRESHOLD)
        self._again = min(AGAIN, self._interval)
        # An outage that is long enough to make a beat too old has to be seen as one.
        self._gap = min(FLEET_GAP, threshold / 2)
        self._patience = threshold - min(CAUTION, threshold / 3)
        self._host: dict[str, Any] = {**host_facts()}
        if supervisor is not None:
            self._host["supervisor"] = supervisor
        self.host_id = self._host.get("host_id", "")
        self._started_file = started_file
        self._facts = self._fixed_facts(config)
        self._beat_hooks = features.taking_part("beat")
        self._wake = threading.Event()
        self._ended = False
        self._heard = ""
        self._last_good = 0.0
        self._errors: frozenset[str] = frozenset()
        self.quiet = False

    def _fixed_facts(self, config: Config) -> dict[str, Any]:
        loop: dict[str, Any] = {}
        if config.async_queues:
            loop["async_queues"] = list(config.async_queues)
            loop["async_concurrency"] = config.async_concurrency
        return {
            **self._host,
            **loop,
            "concurrency": config.concurrency,
            "queues": [each.name for each in config.processor_queues for _ in range(each.weight)],
            "started_at": self._started_at,
            "version": __version__,
            "python": platform.python_version(),
            "django": django.get_version(),
            "redis_py": redis.__version__,
        }

    def beat(self) -> None:
        """One beat. Raises redis-py's errors."""
        identity = self._membership.identity
        info = {**self._facts, "pid": int(identity.split(":")[-2]), "rss_kb": memory_kb()}
        info["classes"] = self._roster.digest
        # An extension module that is loaded late may have brought the lock back.
        info["gil"] = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
        if "async_queues" in info:
            info["async_busy"] = self._async_busy()
        reply = self._store.beat(
            Beat(
                identity,
                json.dumps(info),
                self._busy(),
                self.quiet,
                self._queues,
                json.dumps({**self._host, "pid": info["pid"], "started": self._started_file}),
                self.host_id,
                self._gap,
            )
        )
        if reply.buried:
            return  # no good beat; the fetcher learns of it too, and sees to a new identity
        self._last_good = time.monotonic()
        self._membership.present = identity
        self._outage.over(wrote=True)
        self._bulletin.came(reply.bulletin)
        errors = frozenset(reply.errors)
        for each in errors - self._errors:
            logger.error("Part of a beat failed: %s.", each)
        self._errors = errors
        if reply.command is not None and reply.command[1] != self._heard:
            word, self._heard = reply.command
            logger.info("Asked from outside to %s.", word)
            self._command(word)
        self._roster.tell()

    def first_beat(self, give_up: Callable[[], bool]) -> bool:
        """Beat until one is good; false where `give_up` said so first."""
        while not give_up():
            try:
                self.beat()
                return True
            except (redis.RedisError, OSError) as error:
                self._outage.failed("The first beat", error)
            self._wake.wait(self._again)
        return False

    def is_fresh(self) -> bool:
        """Whether the last good beat is so recent that nobody can take this worker for dead yet."""
        return time.monotonic() - self._last_good < self._patience

    def now(self) -> None:
        """Beat at once: something changed that others want to see."""
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    def loop(self) -> None:
        """The thread's body."""
        wait = self._interval
        while True:
            self._turned()
            self._wake.wait(wait)
            self._wake.clear()
            if self._ended:
                return
            try:
                self.beat()
                wait = self._interval
            except (redis.RedisError, OSError) as error:
                self._outage.failed("A beat", error)
                wait = self._again
                continue
            for hook in self._beat_hooks:
                try:
                    hook()
                except Exception:
                    logger.exception("A feature failed at the beat.")
