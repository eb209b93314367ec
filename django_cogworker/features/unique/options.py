"""What may be said of a unique job, and how it stands in the payload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_cogworker.jobs.options import Option
from django_cogworker.parsers import parse_seconds

UNTIL_EXECUTING = "until_executing"
UNTIL_EXECUTED = "until_executed"
WHILE_EXECUTING = "while_executing"
MODES = (UNTIL_EXECUTING, UNTIL_EXECUTED, WHILE_EXECUTING)
#: The modes whose lock is claimed by the push.
UNTIL = (UNTIL_EXECUTING, UNTIL_EXECUTED)

CONFLICTS = ("skip", "raise", "replace")


def check_mode(value: Any) -> str | None:
    if value is None or value is False:
        return None
    if value is True:
        return UNTIL_EXECUTED
    if isinstance(value, str) and value in MODES:
        return value
    raise ValueError(
        "'until_executing', 'until_executed', 'while_executing', True ('until_executed') or None"
    )


def check_unique_on(value: Any) -> Any:
    if value is None or callable(value):
        return value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("a list of names of perform's parameters, or a function of its arguments")
    if not all(isinstance(each, str) and each for each in value):
        raise ValueError("a list of names of perform's parameters, or a function of its arguments")
    return list(value)


def check_ttl(value: Any) -> float | None:
    return None if value is None else parse_seconds(value)


def check_conflict(value: Any) -> str:
    if not isinstance(value, str) or value not in CONFLICTS:
        raise ValueError("'skip', 'raise' or 'replace'")
    return value


def _wire_of(name: str, absent: Any) -> Any:
    return lambda value: {} if value == absent else {name: value}


#: `unique_on` may be a function: it is taken out of the payload before that is encoded.
OPTIONS = (
    Option("unique", None, check_mode, _wire_of("unique", None)),
    Option("unique_on", None, check_unique_on, _wire_of("unique_on", None)),
    Option("unique_ttl", None, check_ttl, _wire_of("unique_ttl", None)),
    Option("on_conflict", "skip", check_conflict, _wire_of("on_conflict", "skip")),
)
