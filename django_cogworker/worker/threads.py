"""The one way to make a thread in a worker: named, and never silently gone.

The body is a loop of its own. When it ends by an exception, that is logged and the body starts
again after a pause, so a fault costs a moment and not the worker's function. When it returns, the
thread is done.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django_cogworker.worker.outage import Pause

logger = logging.getLogger("django_cogworker")


def start_thread(name: str, body: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread that runs `body`; after a crash again."""

    def run() -> None:
        pause = Pause()
        while True:
            try:
                body()
                return
            except BaseException:
                logger.critical("The thread %s crashed; it starts again.", name, exc_info=True)
            threading.Event().wait(pause.seconds())

    thread = threading.Thread(target=run, name=f"cogworker-{name}", daemon=True)
    thread.start()
    return thread
