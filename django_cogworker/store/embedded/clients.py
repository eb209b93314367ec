"""Who uses the server, as its watchdog sees it, and how it makes sure that nobody does.

The watchdog holds one connection, and counts the others. It also looks at how many connections
there have ever been, so that one that came and went between two looks counts as use.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from django_cogworker.store.embedded.logs import note
from django_cogworker.store.embedded.paths import closed_door
from django_cogworker.store.embedded.wire import Line, WireError, info


@dataclass(frozen=True, slots=True)
class Census:
    """Clients other than the watchdog now, and connections ever made."""

    others: int
    connections: int


class Clients:
    """The clients of one server, asked for over one connection."""

    __slots__ = ("_line", "_socket")

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._line: Line | None = None

    def census(self) -> Census | None:
        """Who is connected; None where the server does not say."""
        try:
            if self._line is None:
                self._line = Line(self._socket)
                self._line.call("CLIENT", "SETNAME", "cogworker-watchdog")
            clients = info(self._line.call("INFO", "clients"))
            stats = info(self._line.call("INFO", "stats"))
            return Census(
                int(clients["connected_clients"]) - 1, int(stats["total_connections_received"])
            )
        except (WireError, KeyError, ValueError) as error:
            note(f"the server does not say who is connected: {error!r}")
            self.close()
            return None

    def shut_out(self, before: Census) -> bool:
        """Take the socket's name away; give it back, and return False, if somebody had come in.

        Whoever connected before the renaming stands in the server's queue. The server takes in all
        of that queue before it waits for the next commands, so the second census, which is asked
        for after the first one was answered, counts everybody.
        """
        door = closed_door(self._socket)
        os.rename(self._socket, door)
        if self.census() == before and self.census() == before:
            return True
        os.rename(door, self._socket)
        return False

    def close(self) -> None:
        """Hang up; the next census calls again."""
        if self._line is not None:
            self._line.close()
            self._line = None
