"""How a supervisor comes to new code and keeps its children: it executes its command line anew.

First a trial: the same command line is started as a process of its own that goes as far as a
supervisor goes and ends. Only if it ended well does the supervisor go the same way, for once it has
begun there is no way back. Process ids, lines and what was not told yet go through the environment;
the pid stays, so the children stay its children. Signals are blocked until the new program has its
handlers.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import signal
import time
from collections.abc import Iterable
from typing import Any

from django_cogworker.worker.children import Child, allow_signals, command_line, handled_signals
from django_cogworker.worker.line import Line

logger = logging.getLogger("django_cogworker")

#: Set for the trial.
TRIAL_VARIABLE = "DJANGO_COGWORKER_TRIAL"
#: What one program hands to the next.
HANDOVER_VARIABLE = "DJANGO_COGWORKER_HANDOVER"
#: Seconds that the trial may take.
PATIENCE = 60.0


def is_trial() -> bool:
    """Whether this process only shows that the code starts; asked once."""
    return bool(os.environ.pop(TRIAL_VARIABLE, ""))


@dataclasses.dataclass(slots=True)
class Handover:
    """What the program before left."""

    children: list[Child]
    untold: dict[str, dict[str, Any]]


def handed_over() -> Handover | None:
    """Take it, if there is one."""
    text = os.environ.pop(HANDOVER_VARIABLE, "")
    if not text:
        return None
    left = json.loads(text)
    children = [
        Child(
            each["slot"],
            each["pid"],
            Line.from_descriptor(each["line"], blocking=False),
            each["since"],
            old=True,
            identity=each["identity"],
            ready=each["ready"],
            ending=each["ending"],
            asked=each["asked"],
            kill_at=each["kill_at"],
            killed=each["killed"],
        )
        for each in left["children"]
    ]
    return Handover(children, left["untold"])


class Renewal:
    """The one of a supervisor."""

    def __init__(self) -> None:
        self._trial: int | None = None
        self._give_up = 0.0
        # Behind a link that a deploy turns to another directory the shell's name of it counts.
        self._directory = os.environ.get("PWD", "")
        try:
            if not os.path.samefile(self._directory, os.getcwd()):
                self._directory = ""
        except OSError:
            self._directory = ""

    @property
    def is_under_way(self) -> bool:
        return self._trial is not None

    def begin(self) -> None:
        """Start the trial."""
        command = command_line()
        environment = {**os.environ, TRIAL_VARIABLE: "1"}
        if self._directory:
            try:
                os.chdir(self._directory)
            except OSError as error:
                logger.error("The directory %s cannot be entered: %s.", self._directory, error)
        self._trial = os.posix_spawn(command[0], command, environment)
        self._give_up = time.monotonic() + PATIENCE

    def verdict(self) -> str | None:
        """`None` while the trial goes on; then once how it ended, empty for "well"."""
        if self._trial is None:
            return None
        if time.monotonic() > self._give_up:
            os.kill(self._trial, signal.SIGKILL)
            os.waitpid(self._trial, 0)
            self._trial = None
            return f"it was not done after {PATIENCE:.0f} s"
        pid, status = os.waitpid(self._trial, os.WNOHANG)
        if pid == 0:
            return None
        self._trial = None
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        return f"exit code {code}" if code > 0 else f"signal {-code}"

    def end(self) -> None:
        """The supervisor stops: nobody waits for the verdict any more."""
        if self._trial is not None:
            os.kill(self._trial, signal.SIGKILL)
            os.waitpid(self._trial, 0)
            self._trial = None

    def execute(self, children: Iterable[Child], untold: dict[str, dict[str, Any]]) -> None:
        """Become the new program. Returns only where that failed."""
        left = {
            "children": [
                {
                    "slot": each.slot,
                    "pid": each.pid,
                    "line": each.line.fileno(),
                    "since": each.since,
                    "identity": each.identity,
                    "ready": each.ready,
                    "ending": each.ending,
                    "asked": each.asked,
                    "kill_at": each.kill_at,
                    "killed": each.killed,
                }
                for each in children
            ],
            "untold": untold,
        }
        command = command_line()
        signal.pthread_sigmask(signal.SIG_BLOCK, handled_signals())
        for child in children:
            child.line.set_inheritable(True)
        try:
            os.execve(command[0], command, {**os.environ, HANDOVER_VARIABLE: json.dumps(left)})
        except OSError as error:
            for child in children:
                child.line.set_inheritable(False)
            allow_signals()
            logger.error("The supervisor cannot execute itself anew (%s).", error)
