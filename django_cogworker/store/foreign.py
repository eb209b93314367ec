"""Records that lie in Redis as JSON, where other hands may have written something else.

Who shows records says which fields they have. What has none of them is left out; one bad record never hides the
others, and is told in the log once.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

logger = logging.getLogger("django_cogworker")

Shape = Callable[[Any], bool]

#: Records that were told already.
_told: set[str] = set()
MOST_TOLD = 1_000
#: Beyond it lies no number that we write: no moment, no size.
MOST = 1e15


def a_text(value: Any) -> bool:
    """A text that UTF-8 can hold."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def a_number(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) <= MOST
    )


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(a_text, value))


def or_none(shape: Shape) -> Shape:
    return lambda value: value is None or shape(value)


def record(raw: Any) -> dict[str, Any] | None:
    """The object in that JSON; `None` where it is none."""
    try:
        found = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def records(
    lines: Iterable[bytes], shapes: Mapping[str, Shape], where: str
) -> list[dict[str, Any]]:
    """Those of the lines that are objects whose fields, where they are there, have these shapes."""
    found = []
    for each in lines:
        line = record(each)
        if line is None or any(
            not fits(line[name]) for name, fits in shapes.items() if name in line
        ):
            tell_once(where, each)
        else:
            found.append(line)
    return found


def number_in(raw: Any, kind: type[int] | type[float] = float) -> float:
    """A number that lies in Redis as text; 0 where it is none."""
    try:
        value = kind(raw or 0)
    except (ValueError, TypeError):
        return 0
    return value if a_number(value) else 0


def tell_once(where: str, raw: Any) -> None:
    """Say in the log that something there cannot be read: once, since pages ask again and again."""
    if where not in _told and len(_told) < MOST_TOLD:
        _told.add(where)
        logger.warning("Not shown, since it cannot be read: %s holds %.200r.", where, raw)
