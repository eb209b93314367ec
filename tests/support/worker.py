"""Real worker processes, started, signalled, killed and read by the tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.processes import die_with_us, kill_group

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "tests.project.settings"


class WorkerProcess:
    """One `python -m django runworker …` (or another command) in a process group of its own.

        worker = WorkerProcess("-c", "2", env={"COGWORKER_REDIS_URL": url}).start()
        worker.wait_for_line(r"ready")
        assert worker.stop() == 0

    What it writes to stdout and stderr is collected line by line in `lines`.
    """

    def __init__(
        self,
        *args: str,
        command: str = "runworker",
        settings: str = SETTINGS,
        env: Mapping[str, str] | None = None,
        python: Sequence[str] = (sys.executable,),
        cwd: Path = ROOT,
    ) -> None:
        self.argv = [*python, "-m", "django", command, *args]
        self.cwd = cwd
        self.env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": settings,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "PYTHONUNBUFFERED": "1",
            **(env or {}),
        }
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Start it; may be called again when it has ended."""
        self._ended = False
        self._process = subprocess.Popen(
            die_with_us(self.argv),
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="worker-output", daemon=True)
        self._reader.start()
        return self

    # -- what it says

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for_line(
        self, pattern: str, *, timeout: float = 15.0, after: int = 0
    ) -> re.Match[str]:
        """Wait until a line matches `pattern` somewhere; lines before number `after` do not count.

        Fails at once when the process has ended without such a line.
        """
        regex = re.compile(pattern)
        deadline = time.monotonic() + timeout
        position = after
        with self._news:
            while True:
                while position < len(self.lines):
                    match = regex.search(self.lines[position])
                    if match:
                        return match
                    position += 1
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "it ended" if self._ended else f"{timeout:g} s went by"
                    raise AssertionError(f"no line with {pattern!r}: {why}\n{self.output}")
                self._news.wait(left)

    # -- what it is

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the worker was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, None while it runs; negative where a signal ended it."""
        return self.process.poll()

    @property
    def alive(self) -> bool:
        return self.returncode is None

    # -- what we do to it

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def pause(self) -> None:
        """Freeze it, as a machine that swaps or a debugger does."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until it has ended by itself, and return its exit status."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {timeout:g} s\n{self.output}") from None
        if self._reader:
            # A grandchild that lives on may hold the pipe open.
            self._reader.join(1)
        return code

    def stop(self, timeout: float = 30.0) -> int:
        """Ask it to stop (SIGTERM) and return its exit status."""
        if self.alive:
            self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self) -> None:
        """SIGKILL to this process alone, as the kernel does when memory runs out."""
        self.process.kill()
        self.process.wait(10)

    def close(self) -> None:
        """Kill it and all that it forked, however it stands with it."""
        process = self._process
        if process is None:
            return
        kill_group(process)
        if self._reader:
            self._reader.join(5)
        if process.stdout:
            process.stdout.close()

    # -- inside

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        for line in stream:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
