"""A real PostgreSQL, started for the tests, that can be restarted.

The cluster is made in a folder of its own and thrown away with it. The server refuses to run as root, so
tests that do run it as another user of the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.needs import missing, need_module
from tests.support.processes import die_with_us
from tests.support.redis_server import free_port
from tests.support.waiting import wait_until

#: Where Debian keeps them, a folder a version; only some of them are linked to the PATH.
DEBIAN = Path("/usr/lib/postgresql")
#: Whom the server runs as where the tests run as root.
OTHERS = ("postgres", "nobody")


def find_folder() -> Path:
    """The folder with `initdb` and `postgres`."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else Path(missing("postgres"))


def _other_user() -> str | None:
    if os.getuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return next((each for each in OTHERS if each in known), None)


class PostgresServer:
    """One server, on a port of the loopback interface, with the database `postgres`.

        with PostgresServer(max_connections=15) as server:
            server.rows("select 1")

    Keywords are settings of the server. The address stays the same over restarts.
    """

    def __init__(self, **config: Any) -> None:
        need_module("psycopg")
        need_module("psycopg_pool")
        self.folder = find_folder()
        self.port = free_port()
        self.config = {"fsync": "off", "listen_addresses": "127.0.0.1", **config}
        self._user = _other_user()
        self.directory = Path(tempfile.mkdtemp(prefix="cogpostgres-"))
        if self._user is not None:
            shutil.chown(self.directory, self._user)
        self._process: subprocess.Popen[bytes] | None = None

    # -- where it is

    def setting(self, **more: Any) -> dict[str, Any]:
        """An entry of `DATABASES`."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            **more,
        }

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the query finds, by a connection of the tests' own that is closed afterwards."""
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            return connection.execute(query.encode()).fetchall()

    def clients(self) -> int:
        """How many clients are connected, the one that asks left out."""
        ((number,),) = self.rows(
            "select count(*) from pg_stat_activity "
            "where backend_type = 'client backend' and pid <> pg_backend_pid()"
        )
        return int(number)

    # -- its life

    def create(self) -> Self:
        self._run("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "-D", self.data)
        return self

    @property
    def data(self) -> str:
        return str(self.directory / "data")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {"port": self.port, "unix_socket_directories": self.directory, **self.config}
        command = [str(self.folder / "postgres"), "-D", self.data]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                die_with_us(command),
                user=self._user,
                group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._answers, timeout=30, message=self.log)

    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End it; connections are cut off in the middle of what they do."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.create().start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    # -- inside

    def _answers(self) -> bool:
        import psycopg

        try:
            return bool(self.rows("select 1"))
        except psycopg.OperationalError as error:
            raise AssertionError(str(error)) from None

    def _run(self, program: str, *args: str) -> None:
        done = subprocess.run(
            [str(self.folder / program), *args],
            user=self._user,
            group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
