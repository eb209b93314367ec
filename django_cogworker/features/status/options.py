"""The options `track` and `result_ttl`."""

from __future__ import annotations

from typing import Any

from django_cogworker.jobs.options import Option
from django_cogworker.parsers import parse_seconds


def _track(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def _result_ttl(value: Any) -> float | None:
    try:
        return None if value is None else parse_seconds(value)
    except ValueError as error:
        raise ValueError(f"{error}, or None to keep no result") from None


OPTIONS = (
    Option("track", False, _track, lambda value: {"track": True} if value else {}),
    Option(
        "result_ttl",
        None,
        _result_ttl,
        lambda value: {} if value is None else {"track": True, "result_ttl": value},
    ),
)
