"""What the watchdog tells others about its server: one small JSON file, `server.json`.

Written by the watchdog alone, before and after it starts the server; read by everybody. Whether the
server lives is not in it: only the locks know that.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class State:
    """`server_pid` is None until the server runs; pids count in `namespace` only."""

    socket: str
    watchdog_pid: int
    server_pid: int | None
    namespace: str
    binary: str
    version: str
    persistent: bool
    linger: float
    started_at: float  # epoch seconds

    def write(self, path: Path) -> None:
        """Replace the file in one step, so that no reader sees half of it."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        os.replace(draft, path)


def read_state(path: Path) -> State | None:
    """The state last written, or None where there is none, or none that can be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("Cannot read %s: %s", path, error)
        return None
    try:
        return State(**json.loads(text))
    except (TypeError, ValueError) as error:
        logger.warning("Ignoring %s, which is not a state of ours: %s", path, error)
        return None


def pid_namespace() -> str:
    """Names the space in which this process's pids mean something: two containers differ."""
    if sys.platform != "linux":
        return ""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError as error:
        logger.debug("No /proc/self/ns/pid: %s", error)
        return ""
