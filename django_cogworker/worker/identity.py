"""Who this worker is: `host:pid:nonce`, and facts about its host.

The nonce tells apart processes that got the same pid, or containers that got the same name. A
worker that was presumed dead while it was merely slow goes on under a new identity.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path


def host_name() -> str:
    return os.environ.get("DYNO") or socket.gethostname()


def new_identity() -> str:
    return f"{host_name()}:{os.getpid()}:{secrets.token_hex(6)}"


class Membership:
    """The identity that this worker has now. Shared by all its threads."""

    def __init__(self) -> None:
        self.identity = new_identity()
        #: The identity of the last good beat: under another one nothing may be fetched.
        self.present = ""
        #: Called when the identity was renewed.
        self.renewed: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    @property
    def is_present(self) -> bool:
        """Whether others can see that the holder of this identity lives."""
        return self.present == self.identity

    def renew(self, buried: str) -> str:
        """Take a new identity in place of `buried`; the first of several callers does it."""
        with self._lock:
            if self.identity == buried:
                self.identity = new_identity()
        self.renewed()
        return self.identity


def host_facts() -> dict[str, str]:
    """What tells whether two processes live under the same kernel and see each other's pids."""
    facts = {"hostname": host_name()}
    try:
        facts["boot_id"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        if os.readlink("/proc/self") != str(os.getpid()):
            return facts  # the /proc of another namespace, where the numbers mean other processes
        facts["pid_namespace"] = os.readlink("/proc/self/ns/pid")
        facts["pid_start"] = process_start(os.getpid())
        where = "|".join((facts["hostname"], facts["boot_id"], facts["pid_namespace"]))
        facts["host_id"] = hashlib.sha256(where.encode()).hexdigest()[:16]
    except OSError:
        return facts  # no Linux: then only the beats tell about life
    return facts


def process_start(pid: int) -> str:
    """When the process started, in the kernel's ticks: a re-used pid has another. Raises `OSError`."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[19]


def memory_kb() -> int | None:
    """Resident memory of this process, where the system tells."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        return None
    return None
