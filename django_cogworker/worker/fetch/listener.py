"""The listener: blocks on the token lists while the worker is idle, so that the fetcher need not.

Armed by the fetcher when nothing was to be had, it waits for one token (or for the end of the
block) and tells the fetcher, which then looks. One look every two seconds remains without any
token: a token may have gone down with a worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import redis

from django_cogworker.store.store import BLOCK, Store
from django_cogworker.worker.outage import Outage, Pause


class Listener:
    """Waits for tokens on behalf of the fetcher."""

    def __init__(
        self,
        store: Store,
        queues: Sequence[str],
        outage: Outage,
        tell: Callable[[bool], None],
        turned: Callable[[], None],
    ) -> None:
        """`tell` hears whether a token came; `turned` hears of each turn of the loop."""
        self._store = store
        self._queues = queues
        self._outage = outage
        self._tell = tell
        self._turned = turned
        self._go = threading.Semaphore(0)
        self._ended = False
        self.armed = False

    def arm(self) -> None:
        """Wait for one token. Arming an armed listener changes nothing."""
        if not self.armed:
            self.armed = True
            self._go.release()

    def end(self) -> None:
        self._ended = True
        self._go.release()

    def loop(self) -> None:
        """The thread's body."""
        pause = Pause()
        if self.armed:  # the body starts again after a crash: the fetcher still waits for an answer
            self._go.release()
        while True:
            self._turned()
            if not self._go.acquire(timeout=BLOCK):
                continue
            if self._ended:
                return
            found = False
            try:
                found = self._store.wait_for_token(self._queues)
                pause.reset()
                self._outage.over(wrote=False)
            except (redis.RedisError, OSError) as error:
                self._outage.failed("Waiting for jobs", error)
                threading.Event().wait(pause.seconds())
            self.armed = False
            self._tell(found)
