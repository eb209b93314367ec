"""What time it is for jobs: the one place that a test can hold still.

`now()` is what the call that enqueues a job takes for now: the moment of its creation, due times, expiry. It
asks `time.time()` anew each time, so tools that replace that function are seen too. The frozen clock of the test
modes puts a source of its own in its place. Durations are by the monotonic clock, and what several machines have to
agree on is by Redis's: neither has to do with this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_source: Callable[[], float] | None = None


def now() -> float:
    """Epoch seconds."""
    return time.time() if _source is None else _source()


@contextmanager
def following(source: Callable[[], float]) -> Iterator[None]:
    """Take the time from `source`, in the whole process; the innermost counts."""
    global _source
    before, _source = _source, source
    try:
        yield
    finally:
        _source = before
