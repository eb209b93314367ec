"""What may be said of a job class, as class keywords, `@job` keywords or in `.set()`.

An option is declared by the feature that owns it; those of the core are declared here. A keyword
that nobody declared is an error at import, with the nearest name. For type checkers `JobOptions`
lists all of them, since declarations at run time are invisible to them.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypedDict

from django_cogworker.exceptions import InvalidOption, UnknownOption
from django_cogworker.parsers import check_queue_name, parse_names
from django_cogworker.payload.job import OWN_FIELDS, PRIORITIES

#: What `retry=True` means: so many retries after the first attempt.
DEFAULT_RETRIES = 25


def retries_allowed(retry: Any) -> int:
    """How many retries the field `retry` of a payload allows. Junk allows none."""
    if retry is None or retry is True:
        return DEFAULT_RETRIES
    if retry is False:
        return 0
    if isinstance(retry, str):
        try:
            retry = float(retry)
        except ValueError:
            return 0
    if isinstance(retry, (int, float)) and math.isfinite(retry):
        return max(0, int(retry))
    return 0


class JobOptions(TypedDict, total=False):
    """Every option, for type checkers. See `docs/reference/options.md` for what each means."""

    queue: str
    retry: bool | int
    priority: int
    on_commit: bool | str
    at_most_once: bool
    tags: Sequence[str]
    track: bool | None
    result_ttl: float | timedelta | None
    extra: Mapping[str, Any]
    unique: Literal["until_executing", "until_executed", "while_executing"] | bool | None
    unique_on: Sequence[str] | Callable[..., Any] | None
    unique_ttl: float | timedelta | None
    on_conflict: Literal["skip", "raise", "replace"]
    timeout: float | timedelta | None
    expires_in: float | timedelta | None
    sensitive: Sequence[str]
    missing_row: Literal["fail", "discard", "retry"]


Wire = Callable[[Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """A declared option.

    `check` returns the value to keep or raises `ValueError` with what is allowed. `wire` gives the
    fields of the payload for a value; without it (and `stamp`) the option stays in this process.
    """

    name: str
    default: Any
    check: Callable[[Any], Any]
    wire: Wire | None = None
    #: Writes into the payload of one call what depends on its moment.
    stamp: Callable[[Any, dict[str, Any]], None] | None = None


_declared: dict[str, Option] = {}


def declare(option: Option) -> None:
    """Make an option known. Declaring the same name twice replaces it."""
    _declared[option.name] = option


def withdraw(option: Option) -> None:
    """Make an option unknown again."""
    _declared.pop(option.name, None)


def _queue(value: Any) -> str:
    return check_queue_name(value)


def _retry(value: Any) -> bool | int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("True (25 retries), False, or a number of retries from 0")
    return value


def _priority(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        raise ValueError("a whole number from -100 to 100")
    return value


def _on_commit(value: Any) -> bool | str | None:
    if value is not None and not isinstance(value, (bool, str)):
        raise ValueError("True, False, or the alias of a database")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def _tags(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("a list of texts")
    if not all(isinstance(each, str) and each for each in value):
        raise ValueError("a list of texts")
    return list(value)


def _missing_row(value: Any) -> str:
    if value not in ("fail", "discard", "retry"):
        raise ValueError("'fail', 'discard' or 'retry'")
    return str(value)


def _extra(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise ValueError("a dict with texts as keys")
    taken = sorted(OWN_FIELDS & value.keys())
    if taken:
        raise ValueError(f"a dict without the names of our own fields ({', '.join(taken)})")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"a dict that JSON can hold ({error})") from None
    return copy.deepcopy(dict(value))


declare(Option("queue", "default", _queue, lambda value: {"queue": value}))
declare(Option("retry", True, _retry, lambda value: {"retry": value}))
declare(Option("priority", 0, _priority, lambda value: {"priority": value} if value else {}))
declare(Option("on_commit", None, _on_commit))
declare(Option("at_most_once", False, _flag, lambda value: {"at_most_once": True} if value else {}))
declare(Option("tags", (), _tags, lambda value: {"tags": value} if value else {}))
declare(Option("extra", {}, _extra, dict))
declare(
    Option(
        "missing_row",
        "fail",
        _missing_row,
        lambda value: {"missing_row": value} if value != "fail" else {},
    )
)
declare(Option("sensitive", (), parse_names))  # read by `masking`; it does not travel


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Checked options of one job class, or of one call of `.set()`."""

    values: Mapping[str, Any]
    #: The payload's fields that follow from them, made once.
    fields: Mapping[str, Any]
    #: What writes into each payload at the moment of the call.
    stamps: tuple[Callable[[dict[str, Any]], None], ...] = ()

    def fresh_fields(self) -> dict[str, Any]:
        """The fields for one payload, which middleware may change without changing the next one."""
        return {
            name: copy.deepcopy(value) if type(value) in (list, dict) else value
            for name, value in self.fields.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self.values[name] if name in self.values else _declared[name].default

    def merged(self, given: Mapping[str, Any], owner: str) -> Options:
        """These options with `given` on top. Raises `UnknownOption` or `InvalidOption`, naming
        `owner`.
        """
        values = dict(self.values)
        for name, value in given.items():
            option = _declared.get(name)
            if option is None:
                raise UnknownOption(_unknown(name, owner))
            try:
                values[name] = option.check(value)
            except ValueError as error:
                raise InvalidOption(f"{owner}: {name}={value!r}; allowed is {error}.") from None
        _check_together(values, owner)
        return Options(values, _fields(values), _stamps(values))


def _check_together(values: dict[str, Any], owner: str) -> None:
    if not values.get("at_most_once"):
        return
    if values.get("retry", False):
        raise InvalidOption(
            f"{owner}: at_most_once=True and retry={values['retry']!r} contradict each other; "
            "an at-most-once job is never run again. Say retry=False, or leave at_most_once away."
        )


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    if values.get("at_most_once"):
        values = {**values, "retry": False}
    fields: dict[str, Any] = {}
    for name, option in _declared.items():
        if option.wire is not None:
            fields.update(option.wire(values.get(name, option.default)))
    return fields


def _stamps(values: Mapping[str, Any]) -> tuple[Callable[[dict[str, Any]], None], ...]:
    return tuple(
        partial(option.stamp, values[name])
        for name, option in _declared.items()
        if option.stamp is not None and name in values
    )


def _unknown(name: str, owner: str) -> str:
    near = difflib.get_close_matches(name, _declared, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(sorted(_declared))}."
    return f"{owner} has the option {name!r}, which nobody declared. {hint} Free data goes into extra={{…}}."


def no_options() -> Options:
    return Options({}, _fields({}))
