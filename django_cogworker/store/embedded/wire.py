"""The few words of the Redis protocol that starting, watching and stopping a server takes.

Written on plain sockets so that the watchdog, a process that lives next to every embedded server,
loads nothing but the standard library.
"""

from __future__ import annotations

import enum
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

PING_TIMEOUT = 1.0
CALL_TIMEOUT = 5.0


class WireError(Exception):
    """The server could not be talked to, or said something that is no answer."""


class ReplyError(WireError):
    """The server answered with an error."""


class Pulse(enum.Enum):
    """What a PING found."""

    DOWN = "down"
    LOADING = "loading"
    ALIVE = "alive"


class Line:
    """One connection to a server; for one thread."""

    __slots__ = ("_file", "_socket")

    def __init__(self, path: Path, timeout: float = CALL_TIMEOUT) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise WireError(f"{path}: {error}") from error
        self._file = self._socket.makefile("rb")

    def call(self, *words: str) -> str:
        """Send one command and return its answer as text, "" for none; arrays are not understood."""
        parts = [f"*{len(words)}\r\n".encode()]
        for word in words:
            raw = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
        try:
            self._socket.sendall(b"".join(parts))
            return self._answer()
        except (OSError, ValueError) as error:
            raise WireError(f"{words[0]}: {error}") from error

    def _answer(self) -> str:
        head = self._file.readline()
        if not head.endswith(b"\r\n"):
            raise WireError("the server closed the connection")
        kind, rest = head[:1], head[1:-2].decode(errors="replace")
        if kind == b"-":
            raise ReplyError(rest)
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return ""  # nothing there
            body = self._file.read(size + 2)
            if len(body) != size + 2:
                raise WireError("the server closed the connection")
            return body[:-2].decode(errors="replace")
        if kind in (b"+", b":"):
            return rest
        raise WireError(f"unexpected answer {head!r}")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def pulse(path: Path) -> Pulse:
    """Ask a server whether it is there. One that does not answer within a second counts as down."""
    try:
        with Line(path, PING_TIMEOUT) as line:
            line.call("PING")
    except ReplyError as error:
        # "BUSY" and its like come from a living server; only "LOADING" says: not yet.
        return Pulse.LOADING if str(error).startswith("LOADING") else Pulse.ALIVE
    except WireError:
        return Pulse.DOWN  # the answer to the question, not a failure
    return Pulse.ALIVE


def info(text: str) -> dict[str, str]:
    """The `name:value` lines of an INFO answer."""
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}
