"""A server middleware that spoils the payloads of some jobs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def spoiling_some(
    next_one: Callable[[Any, dict[str, Any]], Any],
) -> Callable[[Any, dict[str, Any]], Any]:
    """What has the first argument `spoilt` gets a value that JSON cannot hold."""

    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        if payload["args"][:1] == ["spoilt"]:
            payload["thing"] = object()
        return next_one(job, payload)

    return middleware
