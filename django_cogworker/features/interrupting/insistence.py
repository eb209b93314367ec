"""One interruption of a run: it is due, then repeated each second, for a job may swallow it; and when the grace
is over the job is stuck.
"""

from __future__ import annotations

import math
import time

from django_cogworker.conf import get_config
from django_cogworker.features.interrupting.clock import clock
from django_cogworker.features.interrupting.stuck import stuck_jobs
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.interruption import Interruption

#: Seconds between interruptions of a job that does not yield.
AGAIN = 1.0


class Insistence:
    """That on the end of one run. `clock` calls `due`."""

    def __init__(
        self, context: JobContext, kind: Interruption, message: str, wait: float = 0.0
    ) -> None:
        """It begins in so many seconds. `message` is that of the error which the run ends by."""
        self.context = context
        #: When the clock is to call `due` (monotonic).
        self.at = time.monotonic() + wait
        self._kind, self._message = kind, message
        self._stuck_at = self.at + get_config().timeout_grace
        self._begun = False
        clock.add(self)

    def end(self) -> None:
        """The run is over. May be called from any thread, and twice."""
        clock.remove(self)

    def due(self, now: float) -> None:
        if self._begun and now >= self._stuck_at:
            self.at = math.inf
            stuck_jobs.found(self.context, self._kind, self._message)
            return
        if not self.context.interrupt(self._kind, self._message):
            clock.remove(self)
            return
        self._begun = True
        self.at = min(now + AGAIN, max(now + 0.01, self._stuck_at))
