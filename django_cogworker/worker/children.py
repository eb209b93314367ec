"""The supervisor's children: how one is made, by fork or as a program of its own.

A fork shares the memory of everything that is loaded, so it comes last: all connections are closed
and what is garbage is collected; the rest is frozen, so that the collector of a child touches no page
of it. With threads around, or where the system's libraries do not stand it (macOS), the same command
line is started anew instead, and finds its line in the environment.

Signals are blocked while a child is made and stay so in it until its launcher has set its handlers:
a word of the supervisor that comes in between waits, and is neither lost nor deadly.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from django.core.cache import close_caches
from django.db import connections
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from django_cogworker.store.store import get_store
from django_cogworker.worker.health import Report
from django_cogworker.worker.line import Line
from django_cogworker.worker.supervision import CHILD_VARIABLE, Supervision

#: What the supervisor relays, and what it acts on itself.
HANDLED = ("SIGTERM", "SIGINT", "SIGTSTP", "SIGTTIN", "SIGUSR2")


class Closable(Protocol):
    def close(self) -> None: ...


class BecameChild(Exception):
    """Raised in the child of a fork, up to the entry of the supervisor: this process is a worker."""

    def __init__(self, supervision: Supervision) -> None:
        self.supervision = supervision


@dataclasses.dataclass(slots=True, eq=False)
class Child:
    """A worker process, as the supervisor knows it. Times are monotonic."""

    slot: int
    pid: int
    line: Line
    since: float
    #: It was there before the supervisor's last re-execution.
    old: bool = False
    #: What it has told.
    identity: str = ""
    ready: bool = False
    quiet: bool = False
    ending: str = ""
    health: Report | None = None
    #: When it spoke last; at first, when this program came to know it.
    heard_at: float = dataclasses.field(default_factory=time.monotonic)
    #: It was asked to stop; when it is killed if it has not; that this was done.
    asked: bool = False
    kill_at: float | None = None
    killed: bool = False

    def report(self) -> Report:
        """Its health as it told it; that it speaks counts as a loop of its own."""
        loops = {} if self.health is None else self.health.loops
        ready = self.health is not None and self.health.ready
        return Report(self.pid, self.identity, ready, {**loops, "line": self.heard_at})


def handled_signals() -> set[signal.Signals]:
    return {getattr(signal, name) for name in HANDLED if hasattr(signal, name)}


def allow_signals() -> None:
    """Let come what was held back while this process began. Its handlers are in place now."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled_signals())


@contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals back. In the child of a fork they stay so: the exit is not passed there."""
    signal.pthread_sigmask(signal.SIG_BLOCK, handled_signals())
    try:
        yield
    except BecameChild:
        raise
    except BaseException:
        allow_signals()
        raise
    else:
        allow_signals()


def choose_method(wish: str | None) -> str:
    """`fork` or `spawn`: as wished, else what is safe here."""
    if wish is not None:
        return wish
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def close_everything() -> None:
    """No connection of any kind is shared with a child."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool is not None:
            close_pool()
    close_caches()
    get_store().close()


def command_line() -> list[str]:
    """The command line of this process, for a program that does the same."""
    return [sys.executable, *sys.orig_argv[1:]]


def make_child(
    method: str,
    slot: int,
    others: Iterable[Closable],
    *,
    quiet: bool,
    watches: bool = False,
) -> Child:
    """Start the worker of a slot. `others`: what is the supervisor's alone, its ends of all lines
    above all; a child must not hold them, or nobody would notice the supervisor's end. `watches`: it
    ends when a file has changed (a program of its own only).

    Raises `BecameChild` in a forked child.
    """
    ours, theirs = socket.socketpair()
    with _signals_held():
        forks = method == "fork"
        pid = _fork([ours, *others], theirs, quiet) if forks else _spawn(theirs, quiet, watches)
    theirs.close()
    return Child(slot, pid, Line(ours, blocking=False), time.monotonic(), quiet=quiet)


def _fork(not_for_it: Iterable[Closable], theirs: socket.socket, quiet: bool) -> int:
    close_everything()
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for each in not_for_it:
            each.close()
        raise BecameChild(Supervision(Line(theirs, blocking=True), quiet=quiet))
    return pid


def _spawn(theirs: socket.socket, quiet: bool, watches: bool) -> int:
    theirs.set_inheritable(True)
    told = json.dumps({"line": theirs.fileno(), "quiet": quiet, "watches": watches})
    command, env = command_line(), {**os.environ, CHILD_VARIABLE: told}
    if watches:  # as Django tells the process that its reloader starts
        env[DJANGO_AUTORELOAD_ENV] = "true"
    return os.posix_spawn(command[0], command, env)
