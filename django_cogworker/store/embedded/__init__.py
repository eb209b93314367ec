"""The embedded server: a real Valkey (or Redis) of the project's own, for people who run none.

Life story: a process that needs Redis calls `ensure_server(directory)`. Where a server for that
directory answers, that is all. Otherwise the call starts a watchdog, detached from the caller, and
the watchdog starts the server, on a unix socket only, with append-only persistence. Every process
of the project shares that server; it outlives each of them, and when nobody has been connected for
the linger time the watchdog stops it and leaves. Whoever comes next gets a new server with the old
data.

What a client must do: call `ensure_server` before the first connection, and again whenever the
socket refuses a connection or is gone. The call is cheap while the server runs (one PING), so it
may be made as often as wanted, from any thread and after a fork; nothing is kept in this process.

Who holds what, all of it in the directory:

* `start.lock`: the one process that is starting or stopping the server just now;
* `watchdog.lock`: the watchdog, as long as it lives; without it no server is trusted;
* `server.lock`: inherited by the server itself, so the kernel frees it when the server is gone and
  not before. Only who holds it clears a stale socket or opens the data.

This package takes plain arguments and reads no Django setting.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from django_cogworker.exceptions import EmbeddedServerError

if TYPE_CHECKING:
    from django_cogworker.store.embedded.server import ServerFacts

__all__ = ["DEFAULT_LINGER", "EmbeddedServerError", "ensure_server", "server_facts", "stop_server"]

DEFAULT_LINGER = 30.0
"""Seconds without any client after which the server stops."""


def ensure_server(
    directory: Path, binary: Path | str | None = None, *, linger: float = DEFAULT_LINGER
) -> Path:
    """Return the path of the unix socket of the server of this directory, started if need be.

    The server has answered when this returns, and stays for at least `linger` seconds from now.
    `binary` is the server's program (a path, or a name on the PATH); without one it is looked for.
    `linger` is the time in seconds without a client after which the server stops by itself, 0 for
    never; it counts for the process that starts the server, one that finds it running changes
    nothing. Raises `EmbeddedServerError`, with the cure, where the server cannot be had.
    """
    refuse_windows()
    from django_cogworker.store.embedded import server

    return server.ensure(Path(directory), binary, linger)


def stop_server(directory: Path) -> None:
    """Stop the server of this directory, cleanly, and return when it is gone.

    Does nothing where none runs. A server that has not left after 10 s is killed; its data are safe
    all the same. Raises `EmbeddedServerError` where even that fails.
    """
    refuse_windows()
    from django_cogworker.store.embedded import server

    server.stop(Path(directory))


def server_facts(directory: Path) -> ServerFacts | None:
    """What is known of the server of this directory; None where there has never been one.

    Reads files only, so asking does not count as a client.
    """
    refuse_windows()
    from django_cogworker.store.embedded import server

    return server.facts(Path(directory))


def refuse_windows() -> None:
    """Say early that unix sockets and file locks are missing, rather than fail in an import."""
    if sys.platform == "win32":
        raise EmbeddedServerError(
            "The embedded server needs unix sockets and file locks, which Windows lacks. Run a "
            "Redis or Valkey of your own (for example in WSL or a container) and set "
            "COGWORKER_REDIS to its URL."
        )
