"""The line between the supervisor and one of its children: a pair of sockets, one message a line.

Each end notices by itself when the other process is gone, however it went. The child says who it
is, when it is ready, and why it ends; the supervisor says which of its neighbours was lost. Messages
are JSON objects and small. Whoever does not know a word leaves it alone, for after a re-execution the
two ends may be of different versions.
"""

from __future__ import annotations

import json
import logging
import select
import socket
import threading
from typing import Any

logger = logging.getLogger("django_cogworker")

#: Bytes of one read.
CHUNK = 65_536


class Line:
    """One end. The supervisor's never blocks, the child's waits."""

    def __init__(self, end: socket.socket, *, blocking: bool) -> None:
        end.setblocking(blocking)
        self._end = end
        self._rest = b""
        self._lock = threading.Lock()
        #: Whether the other process has closed its end or is gone.
        self.ended = False

    @classmethod
    def from_descriptor(cls, number: int, *, blocking: bool) -> Line:
        """An end that was handed over by another program; nobody else is to inherit it."""
        end = socket.socket(fileno=number)
        end.set_inheritable(False)
        return cls(end, blocking=blocking)

    def fileno(self) -> int:
        return self._end.fileno()

    def set_inheritable(self, wish: bool) -> None:
        self._end.set_inheritable(wish)

    def close(self) -> None:
        self.ended = True
        self._end.close()

    def tell(self, **words: Any) -> bool:
        """Send one message; false where the other end is gone or does not listen."""
        message = json.dumps(words).encode() + b"\n"
        try:
            with self._lock:
                self._end.sendall(message)
        except OSError:
            return False
        return True

    @property
    def has_room(self) -> bool:
        """Whether a small message goes out without waiting for the other end to listen."""
        try:
            return bool(select.select([], [self._end], [], 0)[1])
        except (OSError, ValueError):
            return False

    def hear(self) -> list[dict[str, Any]]:
        """What has come. A blocking end waits for it; nothing and `ended` when the other is gone."""
        try:
            data = self._end.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return []
        *messages, self._rest = (self._rest + data).split(b"\n")
        return [words for each in messages if (words := _read(each)) is not None]


def _read(message: bytes) -> dict[str, Any] | None:
    try:
        words = json.loads(message)
    except ValueError:
        words = None
    if isinstance(words, dict):
        return words
    logger.error("The line between supervisor and worker brought %r; it is left alone.", message)
    return None
