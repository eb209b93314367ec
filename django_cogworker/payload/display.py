"""Arguments as text for people: JSON as it travels, and of what is tagged its value alone.

`5, "a", 2026-11-30, name="x"`. Words and numbers look as they do in the payload, so that a search in the payload's
bytes and one in this text agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django_cogworker.payload.arguments import OF, TAG, VALUE

#: What is nested deeper than this is shown as an ellipsis.
MAX_DEPTH = 60
#: A line of arguments that are broken into lines is about as long as this at the most.
WIDTH = 88

#: What is shown with its name, as a call of it.
_CALLED = ("dataclass", "model")
_BRACKETS = {"tuple": "()", "set": "{}", "frozenset": "{}"}

_quote = json.JSONEncoder(ensure_ascii=False).encode


def arguments_text(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> str:
    """Arguments in wire form as one line."""
    parts = [_text(each, 0) for each in args]
    parts += [f"{name}={_text(each, 0)}" for name, each in (kwargs or {}).items()]
    return shown(", ".join(parts))


def arguments_lines(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> str:
    """Arguments in wire form, one a line; what does not fit into a line is broken at its brackets."""
    parts = [_broken(each, 0, "") for each in args]
    parts += [f"{name} = {_broken(each, 0, '')}" for name, each in (kwargs or {}).items()]
    return shown("\n".join(parts))


def shown(text: str) -> str:
    """The text without what UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        return f"[{_items(value, depth)}]"
    if not isinstance(value, dict):
        return _quote(value)
    if TAG in value and VALUE in value:
        return _tagged(value, depth)
    pairs = (f"{_quote(key)}: {_text(each, depth + 1)}" for key, each in value.items())
    return "{" + ", ".join(pairs) + "}"


def _broken(value: Any, depth: int, indent: str) -> str:
    text = _text(value, depth)
    if len(text) + len(indent) <= WIDTH or depth >= MAX_DEPTH:
        return text
    deeper = f"{indent}  "
    if isinstance(value, list):
        lines = [_broken(each, depth + 1, deeper) for each in value]
        opening, closing = "[]"
    elif isinstance(value, dict) and not (TAG in value and VALUE in value):
        lines = [f"{_quote(k)}: {_broken(v, depth + 1, deeper)}" for k, v in value.items()]
        opening, closing = "{}"
    elif value.get(TAG) == "dataclass" and isinstance(value[VALUE], dict):
        lines = [f"{name}={_broken(v, depth + 1, deeper)}" for name, v in value[VALUE].items()]
        opening, closing = f"{_name_of(value)}(", ")"
    else:
        return text
    inner = f",\n{deeper}".join(lines)
    return f"{opening}\n{deeper}{inner}\n{indent}{closing}"


def _items(values: list[Any], depth: int) -> str:
    return ", ".join(_text(each, depth + 1) for each in values)


def _tagged(packed: dict[str, Any], depth: int) -> str:
    value, tag = packed[VALUE], packed[TAG]
    brackets = _BRACKETS.get(tag) if isinstance(tag, str) else None
    if brackets and isinstance(value, list):
        return f"{brackets[0]}{_items(value, depth)}{brackets[1]}"
    if tag in _CALLED:
        return f"{_name_of(packed)}({_call(packed, depth)})"
    if tag == "enum" and isinstance(value, str):
        return value.partition(":")[2] or value
    text = value if isinstance(value, str) else _text(value, depth + 1)
    return f"{text} {packed['tz']}" if "tz" in packed else text


def _name_of(packed: dict[str, Any]) -> str:
    """Of a dataclass its class without the module, of a row the label of its model."""
    name = str(packed.get(OF, "?"))
    return name.partition(":")[2] or name


def _call(packed: dict[str, Any], depth: int) -> str:
    value = packed[VALUE]
    if packed[TAG] == "dataclass" and isinstance(value, dict):
        return ", ".join(f"{name}={_text(each, depth + 1)}" for name, each in value.items())
    text = value if isinstance(value, str) else _text(value, depth + 1)
    return f"{text}, db={packed['db']}" if "db" in packed else text
