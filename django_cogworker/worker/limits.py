"""Limits of a worker's life: so many jobs, so much memory.

Python and its libraries may keep memory that they do not need any more, and a process that begins
afresh has it back. When a limit is reached the worker fetches no more, lets its running jobs end,
however long they take, and ends with status 0; its supervisor or service manager starts another.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Callable

from django_cogworker.worker.identity import memory_kb

#: Seconds between looks at the memory.
LOOK = 1.0
#: Seconds that `ps` may take, where it has to be asked.
PS_TIMEOUT = 5.0


def resident_kb() -> int | None:
    """Resident memory of this process, from `/proc` or else from `ps`."""
    known = memory_kb()
    if known is not None:
        return known
    try:
        answer = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(os.getpid())],
            capture_output=True,
            text=True,
            timeout=PS_TIMEOUT,
            check=True,
        ).stdout
        return int(answer)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


class Limits:
    """Those of one worker; without any it never says a word."""

    def __init__(self, *, jobs: int | None = None, memory_mb: int | None = None) -> None:
        self._jobs = jobs
        self._memory_mb = memory_mb
        self._count = itertools.count(1)
        self._enough = threading.Event()

    @property
    def exist(self) -> bool:
        return self._jobs is not None or self._memory_mb is not None

    def job_ended(self) -> None:
        """A processor is done with a job, from its thread."""
        if self._jobs is not None and next(self._count) >= self._jobs:
            self._enough.set()

    def watch(self, reached: Callable[[str], None]) -> None:
        """The body of a thread: wait until a limit is reached and say which, once."""
        while not self._enough.wait(LOOK if self._memory_mb is not None else None):
            kilobytes = resident_kb()
            if self._memory_mb is not None and (kilobytes or 0) >= self._memory_mb * 1024:
                reached(f"its memory has grown to {(kilobytes or 0) // 1024} MB (--max-memory)")
                return
        reached(f"{self._jobs} jobs have run (--max-jobs)")
