"""What every benchmark needs: a Redis of its own, workers, and a file of stamps."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[1]


class Arena:
    """One Redis, some workers, places for so many stamps."""

    def __init__(self, server: RedisServer, folder: Path, places: int) -> None:
        self.places = places
        self._stamps = folder / "stamps"
        self._stamps.write_bytes(bytes(8 * places))
        os.environ.update(
            COGWORKER_REDIS_URL=server.url,
            BENCH_STAMPS=str(self._stamps),
            DJANGO_SETTINGS_MODULE="benchmarks.project.settings",
        )
        self._workers: list[subprocess.Popen[bytes]] = []

    def start_worker(self, *args: str) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, "-m", "django", "runworker", *args],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._workers.append(worker)
        return worker

    def stop_workers(self) -> None:
        for each in self._workers:
            each.terminate()
        for each in self._workers:
            each.wait(30)
        self._workers.clear()

    def stamps(self) -> list[float]:
        """The stamps that were written, 0.0 for those that were not."""
        return [each[0] for each in struct.iter_unpack("d", self._stamps.read_bytes())]

    def wait_until_all_ran(self, timeout: float) -> list[float]:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found = self.stamps()
            if all(found):
                return found
            time.sleep(0.1)
        missing = sum(not each for each in self.stamps())
        raise SystemExit(f"{missing} of {self.places} jobs did not run within {timeout:.0f} s")


@contextmanager
def arena(places: int) -> Iterator[Arena]:
    """An arena with Django set up in this process as the client."""
    with tempfile.TemporaryDirectory() as folder, RedisServer() as server:
        made = Arena(server, Path(folder), places)
        import django

        django.setup()
        try:
            yield made
        finally:
            made.stop_workers()
