"""Enum members and dataclasses on the wire.

A member travels by its name, not its value: names are what code says, while the value of `auto()` is another one as
soon as a member is put in before it. So a name that is gone is an error that says so, and never another member. A
flag that is several members travels as their names.

A dataclass travels as its fields. It is made by its own `__init__`, so that a field that came later has its default and
`__post_init__` runs; then the fields are set as they were, so that nothing is computed twice.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from functools import cache
from typing import Any

from django_cogworker.exceptions import ArgumentError, UnknownFormat
from django_cogworker.payload import known_types


def is_dataclass(kind: type) -> bool:
    """Whether the class itself is one: a subclass that is none has more than its fields."""
    return "__dataclass_fields__" in vars(kind)


def member_text(member: enum.Enum, where: str) -> str:
    """`module:Qual.Name.MEMBER`; of a flag `…Name.ONE|OTHER`. Raises `ArgumentError`."""
    kind = type(member)
    names = [each.name for each in member] if isinstance(member, enum.Flag) else [member.name]
    text = "|".join(str(each) for each in names)
    if _member(kind, text) is not member:
        raise ArgumentError(
            f"{where} is {member!r}, which has no name that a worker could find it by."
        )
    return f"{known_types.path_of(kind, where)}.{text}"


def member(text: Any) -> enum.Enum:
    """The member with that text. Raises `UnknownFormat` for one that this process does not have."""
    path, _, name = str(text).rpartition(".")
    kind = known_types.find(path)
    if not issubclass(kind, enum.Enum):
        raise UnknownFormat(f"An argument is {text!r}, but {path} is no enum.")
    found = _member(kind, name)
    if found is None:
        known = ", ".join(kind.__members__) or "none"
        raise UnknownFormat(
            f"An argument is {text!r}, but {path} has no member {name!r}. Known: {known}."
        )
    return found


def _member(kind: type[enum.Enum], text: str) -> enum.Enum | None:
    if not issubclass(kind, enum.Flag):
        return kind.__members__.get(text)
    found = kind(0)
    for name in filter(None, text.split("|")):
        if name not in kind.__members__:
            return None
        found |= kind.__members__[name]
    return found


@cache
def _fields(kind: type) -> dict[str, bool]:
    """The names of the fields, and whether `__init__` takes each. Raises `ArgumentError` for what it cannot make."""
    fields = {each.name: each.init for each in dataclasses.fields(kind)}
    for name in inspect.signature(kind).parameters:
        if not fields.get(name):
            raise ArgumentError(
                f"the __init__ of the dataclass {kind.__module__}.{kind.__qualname__} takes {name!r}, which is none of "
                "its fields, so it could not be made again."
            )
    return fields


def fields_of(value: Any, where: str) -> dict[str, Any]:
    """The values of the fields. Raises `ArgumentError` for a class that could not be made again."""
    kind: Any = type(value)
    try:
        names = _fields(kind)
    except ArgumentError as error:
        raise ArgumentError(f"{where} cannot travel to a worker: {error}") from None
    for name in getattr(value, "__dict__", ()):
        if name not in names and not _made_anew(kind, name):
            raise ArgumentError(
                f"{where}.{name} cannot travel to a worker: it is no field of the dataclass "
                f"{kind.__module__}.{kind.__qualname__}. Make it a field, or leave it away."
            )
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _made_anew(kind: Any, name: str) -> bool:
    """Whether the class gives the attribute to an instance by itself: a cached property, or by `__post_init__`."""
    if hasattr(inspect.getattr_static(kind, name, None), "__get__"):
        return True
    code = getattr(getattr(kind, "__post_init__", None), "__code__", None)
    return code is not None and name in (*code.co_names, *code.co_consts)


def check_fields(path: Any, given: Any) -> type:
    """The dataclass with that path, which has those fields. Raises `UnknownFormat`."""
    kind = known_types.find(path)
    if not is_dataclass(kind):
        raise UnknownFormat(f"An argument is a {path!r}, which is no dataclass here.")
    try:
        known = _fields(kind)
    except ArgumentError as error:
        raise UnknownFormat(f"An argument cannot be read: {error}") from None
    strange = [name for name in given if name not in known]
    missing = [name for name in _needed(kind) if name not in given]
    if strange or missing:
        what = (
            f"has no field {strange[0]!r}"
            if strange
            else f"needs a field {missing[0]!r}, which is not there"
        )
        raise UnknownFormat(f"An argument is a {path!r}, which {what}. Fields: {', '.join(known)}.")
    return kind


@cache
def _needed(kind: type) -> tuple[str, ...]:
    return tuple(
        each.name
        for each in dataclasses.fields(kind)
        if each.init
        and each.default is dataclasses.MISSING
        and each.default_factory is dataclasses.MISSING
    )


def make(path: Any, given: dict[str, Any]) -> Any:
    """The dataclass with that path and those fields. Raises `UnknownFormat`, or what its own code raises."""
    kind = check_fields(path, given)
    taken = _fields(kind)
    made = kind(**{name: value for name, value in given.items() if taken[name]})
    for name, value in given.items():
        object.__setattr__(made, name, value)
    return made
