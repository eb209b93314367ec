"""The options `track` and `result_ttl`.

A `track=False` that was said stands in the payload until the push has asked all features, since some have those jobs
tracked that say nothing of it. Then it goes: the payloads of jobs that are not tracked have no such field.
"""

from __future__ import annotations

from typing import Any

from django_cogworker.jobs.options import Option
from django_cogworker.parsers import parse_seconds


def _track(value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise ValueError("True or False, or None to leave it to the other options")
    return value


def _result_ttl(value: Any) -> float | None:
    try:
        return None if value is None else parse_seconds(value)
    except ValueError as error:
        raise ValueError(f"{error}, or None to keep no result") from None


OPTIONS = (
    Option("track", None, _track, lambda value: {} if value is None else {"track": value}),
    Option(
        "result_ttl",
        None,
        _result_ttl,
        lambda value: {} if value is None else {"track": True, "result_ttl": value},
    ),
)
