"""The death of a worker in the midst of a job, as far as one process can play it.

`WorkerKilled` is raised before a line of the project's own code. Like a death it ends open transactions without a
commit, and `except Exception` does not see it. Unlike a death, `finally` blocks and `except BaseException` still run.
Lines count that run in the job's thread, or in its coroutine, in files of the project: no library is left in the
midst of something.
"""

from __future__ import annotations

import copy
import dis
import os
import sys
import sysconfig
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from types import CodeType, CoroutineType, FrameType
from typing import Any

import asgiref
import django

from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.definition import Definition

#: Never interrupted, wherever they lie: a database connection that was left in the midst of something is of no more
#: use, and it is this process that goes on with it.
_LIBRARIES = (
    sysconfig.get_path("stdlib") + os.sep,
    sysconfig.get_path("platstdlib") + os.sep,
    *(os.path.dirname(str(each.__file__)) + os.sep for each in (django, asgiref)),
    str(Path(__file__).resolve().parents[1]) + os.sep,
)
#: Folders of installed packages, of whatever environment.
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class WorkerKilled(BaseException):
    """Stands for the death of the worker that ran the job; nobody but the test mode is to catch it."""


class Bomb:
    """Kills one run before its line number `line`."""

    def __init__(self, definition: Definition, line: int) -> None:
        self._definition = definition
        self._left = line
        self._home = _home_of(definition.target.__module__)
        self._root: FrameType | None = None
        #: Whether it went off; code that catches everything may have hidden it.
        self.exploded = False

    def armed(self) -> Definition:
        """The job class with the bomb in its code."""
        armed = copy.copy(self._definition)
        armed.make = self._make
        return armed

    def _make(self, context: JobContext) -> tuple[Any, Callable[..., Any]]:
        job, call = self._definition.make(context)

        def watched(*args: Any, **kwargs: Any) -> Any:
            before = sys.gettrace()
            sys.settrace(self._trace)
            try:
                result = call(*args, **kwargs)
            finally:
                sys.settrace(before)
            return self._awaited(result) if type(result) is CoroutineType else result

        return job, watched

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        # Other tasks of the loop are seen as well: only what this one awaits counts.
        self._root = sys._getframe()
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return await coroutine
        finally:
            sys.settrace(before)
            self._root = None

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "call" and not self.exploded and self._counts(frame.f_code):
            return self._line if self._is_below_root(frame) else None
        return None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and not self.exploded and not _leaves_with(frame):
            self._left -= 1
            if self._left <= 0:
                self.exploded = True
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise WorkerKilled(f"The worker was killed before {place}.")
        return self._line

    def _counts(self, code: CodeType) -> bool:
        name = code.co_filename
        if name.startswith("<"):
            return False
        if name.startswith(self._home):
            return True
        return not name.startswith(_LIBRARIES) and not any(each in name for each in _INSTALLED)

    def _is_below_root(self, frame: FrameType | None) -> bool:
        if self._root is None:
            return True
        while frame is not None and frame is not self._root:
            frame = frame.f_back
        return frame is not None


def _leaves_with(frame: FrameType) -> bool:
    """Whether the line event is the way out of a `with` block. An exception right there would leave the block
    without its `__exit__`, which no death does to a database.
    """
    return frame.f_lasti in _ways_out(frame.f_code)


@cache
def _ways_out(code: CodeType) -> frozenset[int]:
    """The offsets at which `__exit__` is about to be called with three times `None`."""
    steps = list(dis.get_instructions(code))
    found = set()
    for place, step in enumerate(steps):
        following = place
        while following < len(steps) and steps[following].opname in ("NOP", "SWAP", "PUSH_NULL"):
            following += 1
        three = steps[following : following + 3]
        if len(three) == 3 and all(
            each.opname == "LOAD_CONST" and each.argval is None for each in three
        ):
            found.add(step.offset)
    return frozenset(found)


@cache
def _home_of(module: str) -> str:
    """The folder of the package that the job is from: its code counts, also where it is installed as a library."""
    top = sys.modules.get(module.partition(".")[0])
    file = getattr(top, "__file__", None)
    found = os.path.dirname(file) if file else next(iter(getattr(top, "__path__", ())), "")
    # A module by itself has no folder of its own.
    alone = file is not None and not hasattr(top, "__path__")
    return str(file) if alone else found + os.sep
