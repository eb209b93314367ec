"""What a failed assertion shows: the job that comes nearest to the one that was asked for, and how it differs."""

from __future__ import annotations

import datetime as dt
import difflib
import pprint
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django_cogworker.payload.arguments import unpack_args, unpack_kwargs

#: Values that are longer are shown line by line.
SHORT = 60


def facts_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What can be asked for, as it is in that job."""
    return {
        "args": unpack_args(payload["args"]),
        "kwargs": unpack_kwargs(payload.get("kwargs", {})),
        "queue": payload["queue"],
        "at": payload.get("at"),
    }


def difference(asked: Mapping[str, Any], payloads: Sequence[Mapping[str, Any]]) -> str:
    """Lines about the nearest of these jobs; empty where there is none to compare."""
    if not asked or not payloads:
        return ""
    found = [facts_of(each) for each in payloads]
    nearest = max(found, key=lambda facts: _likeness(asked, facts))
    lines = [f"Nearest of {len(found)}:" if len(found) > 1 else "It differs:"]
    for name, wanted in asked.items():
        lines += _lines(name, wanted, nearest[name])
    return "\n".join(lines)


def elsewhere(payloads: Sequence[Mapping[str, Any]]) -> str:
    """How many jobs of which other classes wait."""
    counts = Counter(each["class"] for each in payloads)
    return ", ".join(f"{count} of {name}" for name, count in sorted(counts.items()))


def _likeness(asked: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    total = 0.0
    for name, wanted in asked.items():
        if _is_equal(wanted, facts[name]):
            total += 2
        else:
            total += difflib.SequenceMatcher(None, repr(wanted), repr(facts[name])).ratio()
    return total


def _is_equal(wanted: Any, found: Any) -> bool:
    return bool(wanted == found)


def _lines(name: str, wanted: Any, found: Any) -> list[str]:
    if _is_equal(wanted, found):
        return [f"    {name}: {_shown(name, found)}, as wanted"]
    one, other = _shown(name, wanted), _shown(name, found)
    if len(one) <= SHORT and len(other) <= SHORT:
        return [f"  ! {name}: wanted {one}, is {other}"]
    before = pprint.pformat(wanted, width=SHORT).splitlines()
    after = pprint.pformat(found, width=SHORT).splitlines()
    compared = [each.rstrip() for each in difflib.ndiff(before, after)]
    return [f"  ! {name}: - wanted, + is", *(f"      {each}" for each in compared)]


def _shown(name: str, value: Any) -> str:
    if name == "at" and isinstance(value, float):
        return dt.datetime.fromtimestamp(value, dt.UTC).isoformat(" ")
    return repr(value)
