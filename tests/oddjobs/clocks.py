"""A worker whose clock is wrong: the file `clock` in the journal's directory says by how many seconds.

Named as a server middleware, so that it is loaded before the worker starts. It may be written while
the worker runs, as a clock is set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.project import journal

FILE = "clock"
_real = time.time


def wrong_time() -> float:
    path = journal.directory() / FILE
    return _real() + (float(path.read_text()) if path.exists() else 0.0)


def middleware(call_next: Callable[..., Any]) -> Callable[..., Any]:
    time.time = wrong_time
    return call_next
