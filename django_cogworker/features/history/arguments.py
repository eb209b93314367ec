"""What the history shows of a job's arguments.

A payload may have a megabyte; a history of fifty thousand of them must not. So long arguments are cut, after
sensitive ones were masked: those never come into the history.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django_cogworker.jobs.masking import visible_arguments

#: Longer arguments (as JSON) are cut, and this much of them is left (characters).
MAX_LENGTH = 2_000
CUT_LENGTH = 500

encode = json.JSONEncoder(separators=(",", ":")).encode
#: A text in JSON, quickly.
quote: Callable[[str], str] = json.encoder.encode_basestring_ascii


def fields(payload: dict[str, Any]) -> str:
    """The arguments as fields of a JSON object: `args`, `kwargs` where there are any, or `args_cut`."""
    try:
        args, kwargs = visible_arguments(payload)
        text = _encode_args(args)
        named = encode(kwargs) if kwargs else ""
    except (TypeError, ValueError, AttributeError, RecursionError):
        # A middleware put something in there that JSON cannot hold.
        return '"args_cut":"(cannot be shown)"'
    if len(text) + len(named) > MAX_LENGTH:
        return f'"args_cut":{encode(f"{text} {named}"[:CUT_LENGTH])}'
    return f'"args":{text},"kwargs":{named}' if named else f'"args":{text}'


def _encode_args(args: Any) -> str:
    """As `encode`, but several times as fast for what most jobs have: a few texts and whole numbers."""
    parts = []
    for each in args:
        kind = type(each)
        if kind is str:
            parts.append(quote(each))
        elif kind is int:
            parts.append(repr(each))
        else:
            return encode(args)
    return f"[{','.join(parts)}]"
