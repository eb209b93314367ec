"""The journal: what the jobs of `tests/project` write down, and how a test steers them.

The jobs run in other processes, so they and the test talk through a directory: jobs append lines
to one file (with O_APPEND, so lines of many processes do not mix), and wait for files to appear.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.project.journal import DIRECTORY_VARIABLE, JOURNAL_NAME
from tests.support.waiting import wait_until


class Journal:
    """The test's side of the directory. Give `env` to the worker process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / JOURNAL_NAME

    @property
    def env(self) -> dict[str, str]:
        return {DIRECTORY_VARIABLE: str(self.directory)}

    def lines(self) -> list[str]:
        """All whole lines so far, in the order in which they were written."""
        if not self.path.exists():
            return []
        return self.path.read_text().split("\n")[:-1]

    def count(self, line: str) -> int:
        return self.lines().count(line)

    def wait_for(self, line: str, *, times: int = 1, timeout: float = 15.0) -> list[str]:
        """Wait until `line` was written `times` times, and return all lines."""
        wait_until(
            lambda: self.count(line) >= times,
            timeout=timeout,
            message=lambda: f"{times} x {line!r} in {self.lines()[-50:]}",
        )
        return self.lines()

    def wait_for_lines(self, number: int, *, timeout: float = 15.0) -> list[str]:
        """Wait until there are at least `number` lines, and return all."""
        wait_until(
            lambda: len(self.lines()) >= number,
            timeout=timeout,
            message=lambda: f"{number} lines, have {len(self.lines())}: {self.lines()[-50:]}",
        )
        return self.lines()

    def release(self, name: str) -> None:
        """Let the jobs that wait for the file `name` go on."""
        (self.directory / name).touch()

    def use_here(self) -> None:
        """Let jobs that run in this very process write here too."""
        os.environ[DIRECTORY_VARIABLE] = str(self.directory)
