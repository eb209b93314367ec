"""Reading the stacks of jobs that run.

Of a job in a thread of its own the stack is that of the thread. A coroutine that waits has none: it hangs on what
it awaits, link by link. Its links are read on its loop, where it stands still meanwhile; a loop that does not come to
that within a second is held up, and then the stack of its thread says by what.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from django_cogworker.jobs.interruption import Interruptible

#: Seconds that loops get to answer, all together.
PATIENCE = 1.0
#: Links of a chain of coroutines, at the most.
DEEPEST = 100


class _Chain:
    """The chain of one coroutine, as soon as its loop has read it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Any) -> None:
        self._coroutine = coroutine
        self._there = threading.Event()
        self._summary: traceback.StackSummary | None = None
        try:
            loop.call_soon_threadsafe(self._read)
        except RuntimeError:  # the loop has just been closed
            self._there.set()

    def _read(self) -> None:
        try:
            links = [(each, each.f_lineno) for each in _links(self._coroutine)]
            self._summary = traceback.StackSummary.extract(links, lookup_lines=False)
        finally:
            self._there.set()

    def text(self, deadline: float) -> str | None:
        """`None` where the loop is held up."""
        if not self._there.wait(max(0.0, deadline - time.monotonic())):
            return None
        return "" if self._summary is None else "".join(self._summary.format())


def stacks_of(runs: Sequence[Interruptible]) -> list[str]:
    """Where the code of each run is now; empty where it has just ended."""
    # Asked first, and waited for together.
    chains = [
        None if each.coroutine is None or each.loop is None else _Chain(each.loop, each.coroutine)
        for each in runs
    ]
    deadline = time.monotonic() + PATIENCE
    stacks = []
    for run, chain in zip(runs, chains, strict=True):
        text = None if chain is None else chain.text(deadline)
        stack = run.stack() if text is None else text
        # Asked afterwards: the thread may have been at its next job already.
        stacks.append("" if run.is_over else stack)
    return stacks


def _links(coroutine: Any) -> Iterator[FrameType]:
    """The frames of a coroutine that stands still, and of those that it awaits, from the outermost on.

    Python does not tell what an async generator waits for: the chain ends with who iterates over it.
    """
    for _ in range(DEEPEST):
        for kind, awaited in (("cr", "await"), ("gi", "yieldfrom")):
            frame = getattr(coroutine, f"{kind}_frame", None)
            if frame is not None:
                yield frame
                coroutine = getattr(coroutine, f"{kind}_{awaited}")
                break
        else:
            return
