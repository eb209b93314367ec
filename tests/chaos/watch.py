"""Who lived when: a thread that looks at the fleet's processes, and one that looks at the tombstones.

It trusts no word of the workers: `/proc` tells who is there, and Redis tells who was buried.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.chaos.records import Burial, Life

LOOK = 0.02
TOMBSTONES = 0.25
_TOMBSTONE = "cogworker:tombstone:"


def process_state(pid: int) -> tuple[str, str] | None:
    """State and start time of a process; `None` where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], fields[19]


def children_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def quick_client(url: str) -> redis.Redis:
    """A client that neither waits long nor repeats by itself."""
    return redis.Redis.from_url(
        url, protocol=2, socket_timeout=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
    )


class Watch:
    """Collects lives and burials until it is closed."""

    def __init__(self, url: str) -> None:
        self.lives: list[Life] = []
        self.burials: list[Burial] = []
        self._alive: dict[int, tuple[Life, str]] = {}
        self._parents: dict[int, str] = {}
        self._client = quick_client(url)
        self._buried: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=body, name="watch", daemon=True)
            for body in (self._watch_processes, self._watch_tombstones)
        ]
        for each in self._threads:
            each.start()

    def add(self, pid: int, slot: str, *, is_parent: bool = False) -> None:
        """A process was started; `is_parent`: its children are the workers, not it."""
        with self._lock:
            if is_parent:
                self._parents[pid] = slot
            else:
                self._see(pid, slot)

    def children(self, parent: int) -> list[int]:
        """The pids of the supervisor's workers that live, the oldest first."""
        with self._lock:
            return [pid for pid in children_of(parent) if pid in self._alive]

    def living(self) -> list[int]:
        with self._lock:
            return list(self._alive)

    def stopped(self, pid: int) -> None:
        """The worker was asked to stop just now."""
        with self._lock:
            if pid in self._alive and self._alive[pid][0].stopped is None:
                self._alive[pid][0].stopped = time.time()

    def close(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join(5)
        self._client.close()

    def save(self, path: Path) -> None:
        path.write_text(
            json.dumps(
                {
                    "lives": [vars(each) for each in self.lives],
                    "burials": [vars(each) for each in self.burials],
                },
                indent=1,
            )
        )

    def _see(self, pid: int, slot: str) -> None:
        state = process_state(pid)
        if state is None or pid in self._alive:
            return
        now = time.time()
        # It may be a little older than our first look.
        life = Life(pid, slot, now - 1.0, now)
        self._alive[pid] = life, state[1]
        self.lives.append(life)

    def _watch_processes(self) -> None:
        while not self._ended.wait(LOOK):
            with self._lock:
                for parent, slot in list(self._parents.items()):
                    for pid in children_of(parent):
                        self._see(pid, slot)
                    if process_state(parent) is None:
                        del self._parents[parent]
                for pid, (life, born) in list(self._alive.items()):
                    before = time.time()
                    state = process_state(pid)
                    if state is None or state[0] in "ZX" or state[1] != born:
                        life.dead = time.time()
                        del self._alive[pid]
                    else:
                        life.last_alive = before

    def _watch_tombstones(self) -> None:
        before = time.time()
        while not self._ended.wait(TOMBSTONES):
            began = time.time()
            try:
                self._look_at_tombstones(before)
            except redis.RedisError:
                continue  # away: then nobody is buried either
            before = began

    def _look_at_tombstones(self, before: float) -> None:
        for raw in self._client.scan_iter(f"{_TOMBSTONE}*", count=1000):
            key = raw.decode()
            if key in self._buried or self._client.get(key) != b"buried":
                continue
            self._buried.add(key)
            self.burials.append(Burial(int(key.split(":")[-2]), before, time.time()))
