"""The lifeline: a worker that a web server has started ends with it, however that one ends.

Its standard input is a pipe that only the starter can write to, and never does. When the pipe ends, the starter
has gone or wants the worker to go; it stops as by TERM.
"""

from __future__ import annotations

import logging
import os
import signal

from django_cogworker.worker.threads import start_thread

logger = logging.getLogger("django_cogworker")

#: Set for a process that has one.
LIFELINE_VARIABLE = "DJANGO_COGWORKER_LIFELINE"


def hold_lifeline() -> None:
    """Stop this process when its lifeline ends, if it has one. Its own children do not have it."""
    if not os.environ.pop(LIFELINE_VARIABLE, ""):
        return
    line = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)

    def hold() -> None:
        while os.read(line, 1):
            pass
        logger.info("The web server has gone or is about to go; its worker stops too.")
        signal.raise_signal(signal.SIGTERM)

    start_thread("lifeline", hold)
