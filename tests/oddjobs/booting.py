"""A server middleware that keeps a worker, or the whole command, from starting.

With the file `no-start` in the journal's directory this module cannot be imported, as code with a
mistake in it; with `no-boot` the process ends when the worker is being put together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.project import journal

if (journal.directory() / "no-start").exists():
    raise ImportError("this code has a mistake")


def middleware(call_next: Callable[..., Any]) -> Callable[..., Any]:
    if (journal.directory() / "no-boot").exists():
        os._exit(3)
    return call_next
