"""The reloader: the parent of a worker in development, `runworker --reload`.

It is a supervisor of one worker, which is a program of its own and watches the files it has loaded. When one
has changed, that worker stops in good order: running jobs end, those that do not end in time go back to their
queue. Its place is filled at once, by a program that loads the new code. A worker that is killed is replaced
like any other.

Where the new code does not start, its traceback stands in the log, and nothing is tried until a Python file of
the project has changed.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from django_cogworker import __version__
from django_cogworker.worker import files
from django_cogworker.worker.children import Child
from django_cogworker.worker.supervisor import Supervisor

logger = logging.getLogger("django_cogworker")

#: Seconds between two looks at the files while no worker can start.
LOOK = 0.5


class Reloader(Supervisor):
    """One parent of one worker."""

    watches = True

    def __init__(self, **options: Any) -> None:
        super().__init__(1, method="spawn", **options)
        #: The files as they were before the last start.
        self._stamps: dict[str, int] = {}
        #: When to look at them, while the last start has failed.
        self._look_at: float | None = None

    def _greet(self) -> None:
        logger.info(
            "django-cogworker %s starts a worker and reloads it when files change, pid %d.",
            __version__,
            os.getpid(),
        )

    def _fill_places(self) -> None:
        if self._look_at is not None:
            if time.monotonic() < self._look_at:
                return
            self._look_at = time.monotonic() + LOOK
            if files.stamps() == self._stamps:
                return
            self._look_at = None
            logger.info("A file has changed; trying to start a worker.")
        if not self._children and self._respawns[0].is_due(time.monotonic()):
            # Before the start: what changes from now on may not have been seen by it.
            self._stamps = files.stamps()
        super()._fill_places()

    def _when_again(self, child: Child, code: int, lived: float) -> str:
        if child.ready or child.asked or code < 0:
            return super()._when_again(child, code, lived)
        self._look_at = time.monotonic()
        return "its code does not start, and only the next change of a file brings"
