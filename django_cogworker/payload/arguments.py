"""Arguments on the wire: JSON values as they are, known types with a tag.

`pack` turns arguments into what JSON can hold and refuses, with the path of the culprit, what would
not come back as it went. `unpack` is its inverse. A tagged value is an object whose first key is
`$`: `{"$": "date", "v": "2026-11-30"}`. A dict of the user's that has a key `$` travels as `{"$":
"dict", "v": {...}}`. This is wire format version 1.

Types are compared exactly: a subclass (an enum member, a `SafeString`) would come back as its base
and is refused.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable
from typing import Any

from django_cogworker.exceptions import ArgumentError, UnknownFormat

TAG = "$"
VALUE = "v"

_AS_IS = frozenset({str, int, bool, type(None)})
#: Deeper nesting is refused with a clear error before Python's or a reader's stack is in danger.
MAX_DEPTH = 50


def _pack_items(value: Any, path: str, depth: int) -> list[Any]:
    return [_pack(each, f"{path}[{at}]", depth) for at, each in enumerate(value)]


def _pack_set(value: Any, path: str, depth: int) -> list[Any]:
    return [_pack(each, f"{path}{{…}}", depth) for each in value]


def _timedelta_parts(value: dt.timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _zone_kept(value: dt.datetime | dt.time, path: str) -> dict[str, Any]:
    """ISO text and fold; a named zone travels by name, so the wall time survives a change of rules."""
    packed: dict[str, Any] = {VALUE: value.isoformat()}
    if value.fold:
        packed["fold"] = value.fold
    key = getattr(value.tzinfo, "key", None)
    if isinstance(key, str):
        packed["tz"] = key
        packed[VALUE] = value.replace(tzinfo=None).isoformat()
    elif value.tzinfo is not None and value.utcoffset() is None:
        raise ArgumentError(
            f"{path} has a time zone without an offset; give it a datetime with one."
        )
    return packed


_PACKERS: dict[type, tuple[str, Callable[[Any, str, int], Any]]] = {
    dt.datetime: ("datetime", lambda value, path, depth: _zone_kept(value, path)),
    dt.time: ("time", lambda value, path, depth: _zone_kept(value, path)),
    dt.date: ("date", lambda value, path, depth: value.isoformat()),
    dt.timedelta: ("timedelta", lambda value, path, depth: _timedelta_parts(value)),
    decimal.Decimal: ("Decimal", lambda value, path, depth: str(value)),
    uuid.UUID: ("UUID", lambda value, path, depth: value.hex),
    bytes: ("bytes", lambda value, path, depth: base64.b64encode(value).decode("ascii")),
    tuple: ("tuple", _pack_items),
    set: ("set", _pack_set),
    frozenset: ("frozenset", _pack_set),
}


def pack(value: Any, path: str) -> Any:
    """One value for the wire. Raises `ArgumentError`, with `path` as its name."""
    return _pack(value, path, 0)


def pack_args(args: tuple[Any, ...] | list[Any]) -> list[Any]:
    """Positional arguments for the wire. Raises `ArgumentError` naming the path and the type."""
    return [
        each if type(each) in _AS_IS else _pack(each, f"args[{at}]", 0)
        for at, each in enumerate(args)
    ]


def pack_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments for the wire. Raises `ArgumentError` naming the path and the type."""
    return {
        name: each if type(each) in _AS_IS else _pack(each, f"kwargs[{name!r}]", 0)
        for name, each in kwargs.items()
    }


def _pack(value: Any, path: str, depth: int) -> Any:
    kind = type(value)
    if kind in _AS_IS:
        return value
    if depth >= MAX_DEPTH:
        raise ArgumentError(f"{path} is nested deeper than {MAX_DEPTH} levels, or holds itself.")
    if kind is float:
        if not math.isfinite(value):
            raise ArgumentError(f"{path} is {value!r}, which JSON cannot hold.")
        return value
    if kind is list:
        return _pack_items(value, path, depth + 1)
    if kind is dict:
        return _pack_dict(value, path, depth + 1)
    packer = _PACKERS.get(kind)
    if packer is None:
        raise ArgumentError(
            f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot travel to a worker. Pass JSON "
            "values, dates and times, Decimal, UUID, bytes, tuples or sets; of a model instance its primary key."
        )
    tag, pack = packer
    packed = pack(value, path, depth + 1)
    if type(packed) is dict:  # date and time types with a zone or a fold
        return {TAG: tag, **packed}
    return {TAG: tag, VALUE: packed}


def _pack_dict(value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
    packed = {}
    for key, each in value.items():
        if type(key) is not str:
            raise ArgumentError(
                f"{path} has the key {key!r} of type {type(key).__qualname__}; JSON keys are text."
            )
        packed[key] = each if type(each) in _AS_IS else _pack(each, f"{path}[{key!r}]", depth)
    return {TAG: "dict", VALUE: packed} if TAG in packed else packed


def _with_zone(packed: dict[str, Any], read: Callable[[str], Any]) -> Any:
    value = read(packed[VALUE])
    if "tz" in packed:
        from zoneinfo import ZoneInfo

        value = value.replace(tzinfo=ZoneInfo(packed["tz"]))
    return value.replace(fold=packed["fold"]) if "fold" in packed else value


def _items(packed: dict[str, Any]) -> list[Any]:
    return [unpack(each) for each in packed[VALUE]]


_UNPACKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "datetime": lambda packed: _with_zone(packed, dt.datetime.fromisoformat),
    "time": lambda packed: _with_zone(packed, dt.time.fromisoformat),
    "date": lambda packed: dt.date.fromisoformat(packed[VALUE]),
    "timedelta": lambda packed: dt.timedelta(*packed[VALUE]),
    "Decimal": lambda packed: decimal.Decimal(packed[VALUE]),
    "UUID": lambda packed: uuid.UUID(hex=packed[VALUE]),
    "bytes": lambda packed: base64.b64decode(packed[VALUE], validate=True),
    "tuple": lambda packed: tuple(_items(packed)),
    "set": lambda packed: set(_items(packed)),
    "frozenset": lambda packed: frozenset(_items(packed)),
    "dict": lambda packed: {key: unpack(each) for key, each in packed[VALUE].items()},
}


def unpack(value: Any) -> Any:
    """What `pack` was given. Raises `UnknownFormat` for a tag that this version does not know."""
    kind = type(value)
    if kind is dict:
        if TAG not in value:
            return {key: unpack(each) for key, each in value.items()}
        unpacker = _UNPACKERS.get(value[TAG]) if isinstance(value[TAG], str) else None
        if unpacker is None:
            raise UnknownFormat(
                f"An argument is tagged {value[TAG]!r}, which this version does not know."
            )
        return unpacker(value)
    if kind is list:
        return [each if type(each) in _AS_IS else unpack(each) for each in value]
    return value


#: Bytes that an encoded job holds where any of its arguments is tagged.
TAG_MARK = b'"$"'


def check_tags(payload: dict[str, Any]) -> None:
    """Raise `UnknownFormat` where an argument has a tag that this version does not know."""
    try:
        unpack(payload.get("args") or [])
        unpack_kwargs(payload.get("kwargs") or {})
    except UnknownFormat:
        raise
    except Exception:
        return  # a known tag with a value that it cannot have: that is a failure of the run


def unpack_args(packed: list[Any]) -> list[Any]:
    return [each if type(each) in _AS_IS else unpack(each) for each in packed]


def unpack_kwargs(packed: dict[str, Any]) -> dict[str, Any]:
    return {name: unpack(each) for name, each in packed.items()}
