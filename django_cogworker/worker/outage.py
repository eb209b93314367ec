"""Redis trouble as the log tells it: one line when it begins, one a minute while it lasts, one when
it is over.

All loops of a worker share one `Outage`, so an outage is one story, not one a thread. It also
has the pause between tries: growing, capped and jittered, so that a fleet does not come back in
step.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

import redis

from django_cogworker.store.errors import is_unavailable

logger = logging.getLogger("django_cogworker")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
SUMMARY_EVERY = 60.0
#: A Redis that refused writes has to carry them out for so long before it counts as back: at the
#: limit of its memory it takes some and refuses others.
CALM = 1.0
#: Different errors that are remembered, so that each is told once.
MOST_TOLD = 1000


class Outage:
    """Whether Redis is away just now, and since when."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._lock = threading.Lock()
        self._since: float | None = None
        self._next_summary = 0.0
        self._failures = 0
        self._last_failure = 0.0
        #: Redis answers, but refuses writes (READONLY, OOM …): only a write shows that it is over.
        self._refusing = False
        self._told: dict[str, float] = {}
        #: Called when an error says that a key has the wrong type.
        self.wrong_type: Callable[[], None] = lambda: None

    def failed(self, doing: str, error: BaseException) -> None:
        """Note that `doing` failed. Redis being away is told once; any other error in full."""
        now = time.monotonic()
        if not is_unavailable(error):
            if "WRONGTYPE" in str(error):
                self.wrong_type()
            if self._is_news(f"{doing}: {error}", now):
                logger.error("%s failed: %s", doing, error, exc_info=error)
            return
        with self._lock:
            self._failures += 1
            self._last_failure = now
            self._refusing = self._refusing or isinstance(error, redis.ResponseError)
            if self._since is None:
                self._since, self._next_summary, self._failures = now, now + SUMMARY_EVERY, 1
                logger.warning(
                    "Redis at %s is away (%s: %s); the worker goes on as soon as it is back.",
                    self._description,
                    type(error).__name__,
                    error,
                )
            elif now >= self._next_summary:
                self._next_summary = now + SUMMARY_EVERY
                logger.warning(
                    "Redis at %s has been away for %.0f s (%d failed calls; the last: %s).",
                    self._description,
                    now - self._since,
                    self._failures,
                    error,
                )

    def _is_news(self, text: str, now: float) -> bool:
        """Whether this error is to be told: the same one again only once a minute."""
        if now - self._told.get(text, -SUMMARY_EVERY) < SUMMARY_EVERY:
            return False
        if len(self._told) >= MOST_TOLD:
            self._told.clear()
        self._told[text] = now
        return True

    def over(self, *, wrote: bool) -> None:
        """Note that Redis answered; `wrote`: and carried out a write that needs memory."""
        if self._since is None:
            return
        calm = time.monotonic() - self._last_failure >= CALM
        if self._refusing and not (wrote and calm):
            return
        with self._lock:
            if self._since is not None:
                logger.warning(
                    "Redis at %s is back after %.1f s.",
                    self._description,
                    time.monotonic() - self._since,
                )
                self._since, self._refusing = None, False


class Pause:
    """The growing wait between tries of one loop."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE

    def reset(self) -> None:
        self._next = FIRST_PAUSE

    def seconds(self) -> float:
        """The wait before the next try."""
        current, self._next = self._next, min(self._next * 2, LONGEST_PAUSE)
        return current * random.uniform(0.5, 1.0)
