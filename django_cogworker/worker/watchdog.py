"""The watchdog: sees that the loops of this worker turn, and says how it stands.

One thread. Once a second it takes the worker's report, passes it on, and looks for loops that are
stuck. One that is gets a line in the log with the stacks of all threads, once; another when it
turns again. With a limit the worker then ends at once, so that its supervisor or service manager
starts another; what it held comes back as from any dead worker.

A job in C code that never lets another thread run stops this thread too. For that case the
interpreter's own timer (`faulthandler`), which needs no thread of Python's, is wound up again at every
look: when it runs down, it writes the stacks to the standard error, and with a limit ends the process.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable

from django_cogworker.worker.health import STALE, Health, Report
from django_cogworker.worker.stacks import all_stacks

logger = logging.getLogger("django_cogworker")

#: Seconds between looks.
LOOK = 1.0
#: A look that comes so late shows that the whole process was stopped for a while, not a loop (seconds).
LATE = 5.0
#: The exit status of a worker that ended itself because a loop was stuck.
EXIT_STATUS = 70
#: The timer writes to a descriptor; it knows no streams.
STDERR = 2


class Watchdog:
    """The one of a worker."""

    def __init__(
        self,
        health: Health,
        *,
        limit: float | None,
        publish: Callable[[Report], None],
        timer: bool,
    ) -> None:
        """`limit`: seconds after which a worker with a stuck loop ends; `publish` is given each
        report; `timer`: wind up the interpreter's own timer, of which there is one a process.
        """
        self._health = health
        self._limit = limit
        self._publish = publish
        self._patience = STALE if limit is None else limit
        self._timer = timer
        self._stuck: set[str] = set()
        #: No turn is expected to be older than this: the process was not running then.
        self._since = time.monotonic()
        self._last = self._since
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()
        if self._timer:
            faulthandler.cancel_dump_traceback_later()

    def loop(self) -> None:
        """The thread's body."""
        self._wind_up()
        while not self._ended.wait(LOOK):
            self._wind_up()
            report = self._health.report()
            self._publish(report)
            self._look(report)
        self.end()  # the timer may have been wound up just after it was taken away

    def _look(self, report: Report) -> None:
        now = time.monotonic()
        if now - self._last > LATE:
            self._since = now
        self._last = now
        if now - self._since <= self._patience:
            return
        stuck = set(report.stuck(self._patience, now))
        for name in self._stuck - stuck:
            logger.warning("The loop %s turns again.", name)
        if stuck - self._stuck:
            logger.error(
                "Stuck: %s. The stacks of all threads:\n%s",
                ", ".join(
                    f"the loop {name} has not turned for {now - report.loops[name]:.0f} s"
                    for name in sorted(stuck)
                ),
                all_stacks(),
            )
        self._stuck = stuck
        if stuck and self._limit is not None:
            logger.critical("The worker ends itself (--watchdog); its jobs go to others.")
            logging.shutdown()
            os._exit(EXIT_STATUS)

    def _wind_up(self) -> None:
        if self._timer:
            faulthandler.dump_traceback_later(
                self._patience, exit=self._limit is not None, file=STDERR
            )
