"""Arguments on the wire: JSON values as they are, known types with a tag.

`pack` turns arguments into what JSON can hold and refuses, with the path of the culprit, what would
not come back as it went. `unpack` is its inverse. A tagged value is an object whose first key is
`$`: `{"$": "date", "v": "2026-11-30"}`. A dict of the user's that has a key `$` travels as `{"$":
"dict", "v": {...}}`. This is wire format version 1.

Enum members and dataclasses of the project travel by the path of their class (`objects`, `known_types`), of a model
instance a reference to its row (`references`). A worker that does not know a tag, a class or a member lets the job
wait, as for a format that it does not know.

Types are compared exactly: a subclass (a `SafeString`, a named tuple) would come back as its base and is refused.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import enum
import math
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Model

from django_cogworker.exceptions import ArgumentError, UnknownFormat
from django_cogworker.payload import known_types, objects
from django_cogworker.payload.references import ModelReference, Rows, reference_to

TAG = "$"
VALUE = "v"
#: Beside a dataclass and a row: the path of the class, the label of the model.
OF = "of"

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
        return _pack_object(value, kind, path, depth + 1)
    tag, pack = packer
    packed = pack(value, path, depth + 1)
    if type(packed) is dict:  # date and time types with a zone or a fold
        return {TAG: tag, **packed}
    return {TAG: tag, VALUE: packed}


def _pack_object(value: Any, kind: type, path: str, depth: int) -> dict[str, Any]:
    if issubclass(kind, enum.Enum):
        return {TAG: "enum", VALUE: objects.member_text(value, path)}
    if objects.is_dataclass(kind):
        of, fields = known_types.path_of(kind, path), objects.fields_of(value, path)
        packed = {name: _pack(each, f"{path}.{name}", depth) for name, each in fields.items()}
        return {TAG: "dataclass", OF: of, VALUE: packed}
    if issubclass(kind, Model):
        value = reference_to(value, path)
    if isinstance(value, ModelReference):
        packed = {TAG: "model", OF: value.label, VALUE: _pack(value.pk, f"{path}.pk", depth)}
        return packed if value.db == "default" else {**packed, "db": value.db}
    raise ArgumentError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot travel to a worker. Pass JSON values, "
        "dates and times, Decimal, UUID, bytes, tuples, sets, enum members, dataclasses or saved model instances."
    )


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


#: Gives the instance for a reference.
Resolve = Callable[[ModelReference], Any]


def _as_it_is(reference: ModelReference) -> Any:
    return reference


def _items(packed: dict[str, Any], resolve: Resolve) -> list[Any]:
    return [unpack(each, resolve) for each in packed[VALUE]]


def _named(packed: dict[str, Any], resolve: Resolve) -> dict[str, Any]:
    return {name: unpack(each, resolve) for name, each in packed[VALUE].items()}


def _reference(packed: dict[str, Any]) -> ModelReference:
    return ModelReference(packed[OF], unpack(packed[VALUE]), packed.get("db", "default"))


_UNPACKERS: dict[str, Callable[[dict[str, Any], Resolve], Any]] = {
    "datetime": lambda packed, _: _with_zone(packed, dt.datetime.fromisoformat),
    "time": lambda packed, _: _with_zone(packed, dt.time.fromisoformat),
    "date": lambda packed, _: dt.date.fromisoformat(packed[VALUE]),
    "timedelta": lambda packed, _: dt.timedelta(*packed[VALUE]),
    "Decimal": lambda packed, _: decimal.Decimal(packed[VALUE]),
    "UUID": lambda packed, _: uuid.UUID(hex=packed[VALUE]),
    "bytes": lambda packed, _: base64.b64decode(packed[VALUE], validate=True),
    "tuple": lambda packed, resolve: tuple(_items(packed, resolve)),
    "set": lambda packed, resolve: set(_items(packed, resolve)),
    "frozenset": lambda packed, resolve: frozenset(_items(packed, resolve)),
    "dict": _named,
    "enum": lambda packed, _: objects.member(packed[VALUE]),
    "dataclass": lambda packed, resolve: objects.make(packed[OF], _named(packed, resolve)),
    "model": lambda packed, resolve: resolve(_reference(packed)),
}


def unpack(value: Any, resolve: Resolve = _as_it_is) -> Any:
    """What `pack` was given. Of a model instance what `resolve` makes of its `ModelReference`: without it that one.

    Raises `UnknownFormat` for a tag that this version, or a class that this project does not know.
    """
    kind = type(value)
    if kind is dict:
        if TAG not in value:
            return {key: unpack(each, resolve) for key, each in value.items()}
        return _unpacker(value[TAG])(value, resolve)
    if kind is list:
        return [each if type(each) in _AS_IS else unpack(each, resolve) for each in value]
    return value


def _unpacker(tag: Any) -> Callable[[dict[str, Any], Resolve], Any]:
    unpacker = _UNPACKERS.get(tag) if isinstance(tag, str) else None
    if unpacker is None:
        raise UnknownFormat(f"An argument is tagged {tag!r}, which this version does not know.")
    return unpacker


#: Bytes that an encoded job holds where any of its arguments is tagged.
TAG_MARK = b'"$"'


def check_tags(payload: dict[str, Any]) -> bool:
    """Whether an argument refers to a row. Raises `UnknownFormat` where one has a tag that this version, or a class
    that this project does not know.
    """
    try:
        return bool(list(_references(payload)))
    except UnknownFormat:
        raise
    except Exception:
        return False  # a known tag with a value that it cannot have: that is a failure of the run


def _looked_through(value: Any, path: str) -> Iterator[tuple[str, ModelReference]]:
    """All references in a value in wire form, with their paths. Raises `UnknownFormat`, as reading it would."""
    kind = type(value)
    if kind is list:
        for at, each in enumerate(value):
            yield from _looked_through(each, f"{path}[{at}]")
    elif kind is dict and TAG not in value:
        for name, each in value.items():
            yield from _looked_through(each, f"{path}[{name!r}]")
    elif kind is dict:
        yield from _looked_into(value, path)


def _looked_into(tagged: dict[str, Any], path: str) -> Iterator[tuple[str, ModelReference]]:
    tag = tagged[TAG]
    _unpacker(tag)
    if tag == "model":
        reference = _reference(tagged)
        reference.model  # noqa: B018  it is looked for
        yield path, reference
    elif tag == "enum":
        objects.member(tagged[VALUE])
    elif tag in ("dict", "dataclass"):
        between = "[{!r}]" if tag == "dict" else ".{}"
        if tag == "dataclass":
            objects.check_fields(tagged[OF], tagged[VALUE])
        for name, each in tagged[VALUE].items():
            yield from _looked_through(each, path + between.format(name))
    else:
        yield from _looked_through(tagged.get(VALUE), path)


def unpack_args(packed: list[Any], resolve: Resolve = _as_it_is) -> list[Any]:
    return [each if type(each) in _AS_IS else unpack(each, resolve) for each in packed]


def unpack_kwargs(packed: dict[str, Any], resolve: Resolve = _as_it_is) -> dict[str, Any]:
    return {name: unpack(each, resolve) for name, each in packed.items()}


def rows_of(payload: dict[str, Any]) -> Rows:
    """The rows that the arguments of a job refer to; nothing is looked at before one is asked for."""
    return Rows(payload, _references)


def _references(payload: dict[str, Any]) -> Iterator[tuple[str, ModelReference]]:
    yield from _looked_through(payload.get("args") or [], "args")
    yield from _looked_through(payload.get("kwargs") or {}, "kwargs")
