"""The connection to the embedded server: it sees to it that the server runs before it connects.

The server stops by itself some time after its last client has gone, so "it was there a minute ago"
proves nothing; asking at each connect costs a ping, and connects are rare.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis

from django_cogworker.exceptions import EmbeddedServerError


class EmbeddedConnection(redis.UnixDomainSocketConnection):
    """A unix socket connection that starts the embedded server where it does not run yet."""

    def __init__(
        self, *, directory: Path, binary: Path | None = None, path: str = "", **kwargs: Any
    ) -> None:
        super().__init__(path=path, **kwargs)  # type: ignore[no-untyped-call]
        self._directory = directory
        self._binary = binary

    def _connect(self) -> Any:
        from django_cogworker.store.embedded import ensure_server

        try:
            self.path = str(ensure_server(self._directory, self._binary))
        except EmbeddedServerError as error:
            # For whoever retries this is a server that is away; the cure stands in the message.
            raise redis.ConnectionError(str(error)) from error
        return super()._connect()  # type: ignore[no-untyped-call]
