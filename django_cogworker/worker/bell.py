"""The supervisor's bell: signals leave a word here, and the wait ends when one comes.

The handlers only queue a word. That a signal came is also written to a socket by the interpreter
itself, so one that arrives just before the wait begins is not slept over.
"""

from __future__ import annotations

import select
import signal
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django_cogworker.worker.children import HANDLED, allow_signals
from django_cogworker.worker.line import Line


class Bell:
    """The one of a supervisor."""

    def __init__(self) -> None:
        self.words: deque[str] = deque()
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)

    @contextmanager
    def handlers(self) -> Iterator[None]:
        """Our handlers while the supervisor runs; the ones from before afterwards."""

        def handle(number: int, frame: FrameType | None) -> None:
            self.words.append(signal.Signals(number).name.removeprefix("SIG"))

        before: dict[int, Any] = {}
        for name in (*HANDLED, "SIGCHLD"):
            number = getattr(signal, name)
            before[number] = signal.signal(number, handle)
        wakeup = signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
        allow_signals()  # the program before this one may have held them back
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
            signal.set_wakeup_fd(wakeup)

    def wait(self, others: Sequence[Line | socket.socket], seconds: float) -> None:
        """Until a signal comes, one of the others has something, or the time is over."""
        select.select([self._bell, *others], [], [], seconds)
        try:
            self._bell.recv(4096)
        except BlockingIOError:
            pass  # another one spoke, or time went by

    def close(self) -> None:
        self._bell.close()
        self._ringer.close()
