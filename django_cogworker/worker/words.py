"""The words that a worker's main thread acts on: from signal handlers, remote commands, and its own
threads.

A handler only leaves its word here; the main thread takes one after the other.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

#: Seconds between looks of the main thread: a signal that comes just before a wait does not wake it.
GLANCE = 0.25
#: What each signal means; those that a platform lacks are left away.
SIGNALS = {"SIGTERM": "stop", "SIGINT": "stop", "SIGTSTP": "quiet", "SIGTTIN": "stacks"}


class Words:
    """Those of one worker."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[str] = SimpleQueue()
        #: How often a stop was asked for from outside; a second time means "at once".
        self.stops = 0

    def hear(self, word: str) -> None:
        """A word from outside."""
        if word == "stop":
            self.stops += 1
        self._waiting.put(word)

    def stop_once(self) -> None:
        """The worker is to stop for a reason of its own, which hurries nobody."""
        self.stops = max(self.stops, 1)
        self._waiting.put("stop")

    def put(self, word: str) -> None:
        """A word that counts as said once, however often it comes."""
        self._waiting.put(word)

    def next(self, wait: float) -> str | None:
        """The next word, if one comes within so many seconds."""
        try:
            return self._waiting.get(timeout=wait) if wait > 0 else self._waiting.get_nowait()
        except Empty:
            return None

    @contextmanager
    def from_signals(self, *, ignore_interrupt: bool) -> Iterator[None]:
        """Our handlers while the worker runs; the ones from before afterwards. Only the main thread
        may set any. `ignore_interrupt`: Ctrl-C reaches the whole group of processes, and the
        supervisor passes it on as TERM.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            if number != signal.SIGINT or not ignore_interrupt:
                self.hear(SIGNALS[signal.Signals(number).name])

        before: dict[int, Any] = {}
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                before[number] = signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
