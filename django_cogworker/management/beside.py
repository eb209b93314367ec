"""A worker beside the web server of development: `COGWORKER_RUNSERVER = True`.

`runserver` has two processes: one that stays, and its child, which serves and is started anew whenever a file
has changed. The worker is a child of the one that stays (with `--noreload` there is only that one), so that it is
there once; it reloads its code by itself. What it writes goes where the web server writes.

It ends with the web server: its lifeline does not outlive that process, however it ends. In good order the server
waits until the worker's running jobs have ended; a second Ctrl-C hurries it.

Whatever else is called `runserver` and derives from Django's command (that of `staticfiles`, that of Daphne) runs
the method which is wrapped here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Any

from django.core.management.commands.runserver import Command as RunserverCommand
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from django_cogworker.conf import get_config
from django_cogworker.exceptions import CogworkerError
from django_cogworker.worker.lifeline import LIFELINE_VARIABLE
from django_cogworker.worker.supervision import GRACE

_MARK = "brings_a_cogworker"


def attach() -> None:
    """Have `runserver` bring a worker in this process, if it is one."""
    plain = RunserverCommand.run
    if hasattr(plain, _MARK):
        return

    @wraps(plain)
    def run(self: RunserverCommand, **options: Any) -> None:
        if not _is_the_one_that_stays(self, options):
            plain(self, **options)
            return
        with WorkerBeside(self, options):
            plain(self, **options)

    setattr(run, _MARK, True)
    RunserverCommand.run = run  # type: ignore[method-assign]


def _is_the_one_that_stays(command: RunserverCommand, options: dict[str, Any]) -> bool:
    """Others call the command too, such as `testserver`, whose database is not the worker's."""
    if not getattr(command, "_called_from_command_line", False):
        return False
    return not options["use_reloader"] or os.environ.get(DJANGO_AUTORELOAD_ENV) != "true"


class WorkerBeside:
    """The one of a web server, from start to end."""

    def __init__(self, command: RunserverCommand, options: dict[str, Any]) -> None:
        self._command = command
        self._options = options
        self._ending = False
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        try:
            config = get_config()
        except CogworkerError:
            return  # the checks of runserver say what is wrong
        if not config.runserver or config.testing is not None:
            return
        self._patience = config.shutdown_timeout + 2 * GRACE
        environ = {**os.environ, LIFELINE_VARIABLE: "stdin"}
        environ.pop(DJANGO_AUTORELOAD_ENV, None)
        self._process = subprocess.Popen(
            _command_line(self._options),
            stdin=subprocess.PIPE,
            env=environ,
            # Ctrl-C is for the web server, which passes it on.
            start_new_session=os.name == "posix",
        )
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process, self._ending = self._process, True
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            if not _has_ended(process, self._patience):
                self._say("The worker does not stop; it is killed.")
        finally:
            _kill(process)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """A worker that ended by itself is missed by nobody else."""
        status = process.wait()
        if not self._ending:
            self._say(f"The worker has ended (status {status}). Start runserver anew for another.")

    def _say(self, text: str) -> None:
        self._command.stderr.write(text)


def _has_ended(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Wait for it; Ctrl-C hurries it."""
    for _ in range(2):
        try:
            process.wait(patience)
            return True
        except subprocess.TimeoutExpired:
            return False
        except KeyboardInterrupt:
            process.terminate()
            patience = GRACE
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """What is left of it: it leads a group of its own."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _command_line(options: dict[str, Any]) -> list[str]:
    """The program that runs here, with the command of a worker."""
    program = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    reload = "--reload" if options["use_reloader"] and os.name == "posix" else "--noreload"
    line = [sys.executable, *program, "runcogworker", reload]
    line += ["--verbosity", str(options["verbosity"])]
    for name in ("settings", "pythonpath"):
        if options.get(name):
            line += [f"--{name}", str(options[name])]
    return line
