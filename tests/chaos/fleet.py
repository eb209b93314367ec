"""The processes of a trial: a server, two lines with a proxy, a supervisor with two workers, two single
workers, two pushers. What dies is started again, as an init system would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.chaos.schedule import DIRECT, PROXIED, PUSHER_LINE, SUPERVISED, WORKER_LINE
from tests.chaos.watch import Watch, quick_client
from tests.project.journal import DIRECTORY_VARIABLE
from tests.support.processes import die_with_us, kill_group
from tests.support.proxy import RedisProxy
from tests.support.redis_server import RedisServer
from tests.support.worker import ROOT

#: Seconds until a stopped worker must have ended; a stop may wait 5 s for Redis.
STOP_TIMEOUT = 30.0


class Slot:
    """A place for one process of the fleet, and the log of all that have filled it."""

    def __init__(self, name: str, argv: list[str], env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        #: Not started again before this moment.
        self.rests_until = 0.0
        self.starts = 0
        self._argv = [sys.executable, "-m", *argv]
        self._env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **env}

    def start(self) -> int:
        """Start the process; its pid. From the main thread, so that it dies with us."""
        with self.log.open("ab") as log:
            log.write(f"{time.time():.3f} ---- start {self.starts + 1}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                die_with_us(self._argv),
                cwd=ROOT,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1
        return self.process.pid

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def close(self) -> None:
        if self.process is not None:
            kill_group(self.process)


class Fleet:
    """All of it. Call `tend` often, from the main thread."""

    def __init__(self, directory: Path, seed: int, seconds: float) -> None:
        self.directory = directory
        self._redis_directory = directory / "redis"
        self._redis_directory.mkdir()
        self.server = RedisServer(
            self._redis_directory,
            appendonly="yes",
            appendfsync="always",
            maxmemory_policy="noeviction",
        ).start()
        self.client = quick_client(self.server.url)
        self.lines = {name: RedisProxy(self.server.url) for name in (WORKER_LINE, PUSHER_LINE)}
        self.watch = Watch(self.server.url)
        urls = (self.server.url, self.lines[WORKER_LINE].url, self.lines[PUSHER_LINE].url)
        worker = ["django", "runworker", "-c", "5", "-q", "default,2", "-q", "low"]
        self.workers = {
            DIRECT: self._slot(DIRECT, worker, urls[0]),
            # As if on another host: judged by its silence alone.
            PROXIED: self._slot(PROXIED, worker, urls[1], DYNO="another-host"),
            SUPERVISED: self._slot(SUPERVISED, [*worker, "--processes", "2"], urls[0]),
        }
        load = ["tests.chaos.load", "--seed", str(seed), "--seconds", str(seconds), "--name"]
        self.pushers = [
            self._slot("pusher p", [*load, "p"], urls[0]),
            self._slot("pusher q", [*load, "q"], urls[2]),
        ]

    def _slot(self, name: str, argv: list[str], url: str, **env: str) -> Slot:
        common = {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "COGWORKER_REDIS_URL": url,
            DIRECTORY_VARIABLE: str(self.directory),
        }
        log = self.directory / f"{name.replace(' ', '-')}.log"
        return Slot(name, argv, {**common, **env}, log)

    def start(self) -> None:
        for slot in self.workers.values():
            self._start_worker(slot)
        for slot in self.pushers:
            slot.start()

    def _start_worker(self, slot: Slot) -> None:
        self.watch.add(slot.start(), slot.name, is_parent=slot.name == SUPERVISED)

    def tend(self) -> None:
        """Start again what died."""
        for slot in self.workers.values():
            if not slot.alive and time.monotonic() >= slot.rests_until:
                self._start_worker(slot)

    def pushing(self) -> bool:
        return any(slot.alive for slot in self.pushers)

    def ask_to_stop(self, slot: Slot) -> None:
        """An orderly stop, noted for each worker that it concerns."""
        self._note_stop(slot)
        slot.send(signal.SIGTERM)

    def _note_stop(self, slot: Slot) -> None:
        for pid in self.children() if slot.name == SUPERVISED else [slot.pid]:
            self.watch.stopped(pid)

    def kill(self, slot: Slot) -> None:
        if slot.name == SUPERVISED:
            self._note_stop(slot)  # its workers stop when they miss it
        slot.send(signal.SIGKILL)

    def children(self) -> list[int]:
        """The workers under the supervisor."""
        return self.watch.children(self.workers[SUPERVISED].pid)

    def stop(self) -> list[str]:
        """Stop all in good order; what went wrong with that."""
        problems = []
        for slot in self.workers.values():
            self.ask_to_stop(slot)
        for slot in self.workers.values():
            assert slot.process is not None
            try:
                code = slot.process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                problems.append(f"{slot.name} does not stop")
            else:
                if code:
                    problems.append(f"{slot.name} stopped with status {code}")
        return problems

    def close(self) -> None:
        """End everything, however it stands with it."""
        for slot in (*self.workers.values(), *self.pushers):
            slot.close()
        for pid in self.watch.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.watch.close()
        self.client.close()
        for line in self.lines.values():
            line.close()
        self.server.close()
