"""The health door: answers probes over HTTP, on a thread that may have other things to do.

`GET /live` and `GET /ready` answer 200 or 503, with the whole verdict as JSON; `GET /` is `/live`. The door
never waits for a client: what has come of a request is kept until it is whole, so the supervisor, which
has one thread for everything, can serve it within its rounds. The standard library reads the request
and forms the answer. Nothing secret is told.
"""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import select
import socket
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from django_cogworker.worker.health import Verdict

logger = logging.getLogger("django_cogworker")

#: Bytes of a request that are read; probes need some hundred.
MOST_REQUEST = 8192
#: Seconds that a client may take to send it, and clients at a time.
PATIENCE = 2.0
MOST_CLIENTS = 32
BACKLOG = 32


class HealthDoor:
    """One open port."""

    def __init__(self, host: str, port: int) -> None:
        """`host` empty: all addresses of the machine; port 0: a free one. Raises `OSError` where that
        cannot be had.
        """
        both = not host and socket.has_dualstack_ipv6()
        self._door = socket.create_server(
            (host, port),
            family=socket.AF_INET6 if both or ":" in host else socket.AF_INET,
            backlog=BACKLOG,
            dualstack_ipv6=both,
        )
        self._door.setblocking(False)
        self.port: int = self._door.getsockname()[1]
        self._clients: dict[socket.socket, _Client] = {}

    @property
    def open_sockets(self) -> Sequence[socket.socket]:
        """What to wait for until `turn` has something to do."""
        return (self._door, *self._clients)

    def turn(self, verdict: Callable[[], Verdict]) -> None:
        """Do what can be done at once; whoever asks gets this verdict."""
        try:
            while len(self._clients) < MOST_CLIENTS:
                connection, _ = self._door.accept()
                connection.setblocking(False)
                self._clients[connection] = _Client(time.monotonic() + PATIENCE)
        except OSError:
            pass  # nobody else is there, or went away before it was let in
        for connection, client in list(self._clients.items()):
            if self._serve(connection, client, verdict):
                del self._clients[connection]
                connection.close()

    def loop(self, verdict: Callable[[], Verdict]) -> None:
        """The body of a thread that does nothing else, to the end of the process."""
        while True:
            select.select(self.open_sockets, [], [], PATIENCE)
            self.turn(verdict)

    def close(self) -> None:
        for each in self.open_sockets:
            each.close()
        self._clients.clear()

    @staticmethod
    def _serve(connection: socket.socket, client: _Client, verdict: Callable[[], Verdict]) -> bool:
        """Whether the client needs us no more."""
        try:
            data = connection.recv(MOST_REQUEST)
        except BlockingIOError:
            return time.monotonic() > client.leave_at
        except OSError:
            return True
        client.request += data
        if data and b"\r\n\r\n" not in client.request and len(client.request) < MOST_REQUEST:
            return False
        if client.request:
            try:
                connection.send(_Answer(client.request, verdict).text)
            except OSError:
                logger.debug("A health probe went away before it was answered.")
        return True


@dataclasses.dataclass(slots=True)
class _Client:
    leave_at: float
    request: bytes = b""


class _Answer:
    """Stands for the connection before the request handler of the standard library, which reads the
    request from it and writes the answer to it.
    """

    def __init__(self, request: bytes, verdict: Callable[[], Verdict]) -> None:
        self._request = request
        self.verdict = verdict
        self.text = b""
        handler: Any = _Handler
        handler(self, ("probe", 0), self)

    def makefile(self, *args: Any) -> io.BytesIO:
        return io.BytesIO(self._request)

    def sendall(self, data: bytes) -> None:
        self.text += bytes(data)


class _Handler(BaseHTTPRequestHandler):
    """One request. `server` is the `_Answer`."""

    server_version = "cogworker"
    sys_version = ""
    server: Any

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path not in ("", "/live", "/ready"):
            self.send_error(HTTPStatus.NOT_FOUND, "There are /live and /ready.")
            return
        verdict: Verdict = self.server.verdict()
        good = verdict.ready if path == "/ready" else verdict.live
        body = json.dumps(dataclasses.asdict(verdict)).encode()
        self.send_response(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug("Health probe: " + format, *args)
