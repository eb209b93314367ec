"""Wait for something to become true, with a deadline. The tests' only way to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class WaitTimeout(AssertionError):
    """What was awaited did not come in time."""


def wait_until(
    predicate: Callable[[], T],
    *,
    timeout: float = 10.0,
    message: str | Callable[[], str] = "",
    interval: float = 0.005,
) -> T:
    """Call `predicate` until it returns something true, and return that.

    The pause between two calls grows from `interval` to 20 ms. After `timeout` seconds a
    `WaitTimeout` is raised; `message` (a text, or a callable that makes one then) says what was
    awaited. An `AssertionError` of the predicate means "not yet", and is shown at the end.
    """
    deadline = time.monotonic() + timeout
    last_error: AssertionError | None = None
    while True:
        try:
            result = predicate()
            last_error = None
        except AssertionError as error:
            last_error = error
        else:
            if result:
                return result
        if time.monotonic() >= deadline:
            text = message() if callable(message) else message
            what = text or getattr(predicate, "__qualname__", repr(predicate))
            raise WaitTimeout(f"not within {timeout:g} s: {what}") from last_error
        time.sleep(interval)
        interval = min(interval * 1.5, 0.02)
