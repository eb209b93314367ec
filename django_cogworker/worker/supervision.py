"""What a worker process knows of its supervisor: the line to it, and what to do when it is gone.

A child tells its identity and that it is ready, later why it ends. It hears which other child was
lost, and how, so that recovery acts at once. When the line ends, the supervisor is gone: nobody would
replace this worker, or kill it if it got stuck, so it stops in good order, and where it cannot do that
in time, it ends hard.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

from django_cogworker.worker.health import Report
from django_cogworker.worker.line import Line

logger = logging.getLogger("django_cogworker")

#: Where a child that was started as a program of its own finds its line.
CHILD_VARIABLE = "DJANGO_COGWORKER_CHILD"
#: How a worker ends that makes room for a fresh one: a limit is reached, or its code has changed.
RENEWED = ("recycled", "reloaded")
#: Seconds beyond the shutdown time-out after which a child that does not stop is killed.
GRACE = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A worker process that ended in another way than in good order. `identity` is empty where it
    never came to have one; `at` is the host's time; `lived` is in seconds.
    """

    pid: int
    identity: str
    how: str
    at: float
    lived: float

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.pid}-{self.at}"

    @classmethod
    def read(cls, words: dict[str, Any]) -> Loss:
        """Raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        return cls(
            int(words["pid"]),
            str(words["identity"]),
            str(words["how"]),
            float(words["at"]),
            float(words["lived"]),
        )


class Supervision:
    """The child's side. Made in the child, before anything else is."""

    def __init__(self, line: Line, *, quiet: bool = False, watches: bool = False) -> None:
        """`quiet`: the process whose place it takes was quiet. `watches`: it ends when a file has changed."""
        self._line = line
        self.quiet = quiet
        self.watches = watches
        self.supervisor = os.getppid()

    @classmethod
    def from_environment(cls) -> Supervision | None:
        """That of a process which a supervisor started as a program of its own; else `None`."""
        text = os.environ.pop(CHILD_VARIABLE, "")
        if not text:
            return None
        words = json.loads(text)
        line = Line.from_descriptor(int(words["line"]), blocking=True)
        return cls(line, quiet=bool(words["quiet"]), watches=bool(words.get("watches")))

    def tell(self, **words: Any) -> None:
        """Say something about this worker. What the supervisor does not hear it learns by itself."""
        self._line.tell(**words)

    def tell_health(self, report: Report) -> None:
        """How this worker is. Left away while the supervisor does not listen."""
        if self._line.has_room:
            self._line.tell(health=dataclasses.asdict(report))

    def listen(
        self, *, stop: Callable[[], None], lost: Callable[[Loss], None], patience: float
    ) -> None:
        """The body of a thread, to the end of the process. `patience`: seconds for the stop when the
        supervisor is gone.
        """
        while not self._line.ended:
            for words in self._line.hear():
                if "loss" in words:
                    try:
                        loss = Loss.read(words["loss"])
                    except (KeyError, TypeError, ValueError):
                        logger.error(
                            "The supervisor tells of a loss that makes no sense: %r", words
                        )
                    else:
                        lost(loss)
        logger.warning("The supervisor (pid %d) is gone; this worker stops too.", self.supervisor)
        stop()
        threading.Event().wait(patience)
        logger.critical("The worker did not stop in %.0f s; it ends hard.", patience)
        logging.shutdown()
        os._exit(1)
