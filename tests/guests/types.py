"""Enums and dataclasses, plain and odd."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any, ClassVar


class Color(enum.Enum):
    RED = enum.auto()
    GREEN = enum.auto()
    CRIMSON = RED


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    BOTH = READ | WRITE


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    lines: tuple[Line, ...]
    color: Color | None = None
    inner: Parcel | None = None
    kinds: ClassVar[int] = 3


@dataclasses.dataclass
class Price:
    """Its code changes what it is given, and keeps what it works out."""

    cents: int
    gross: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.cents *= 100
        self.gross = self.cents + 1
        self.seen = True


@dataclasses.dataclass
class InitOnly:
    name: str
    secret: dataclasses.InitVar[str]


class Beneath(Line):
    """No dataclass itself."""


@dataclasses.dataclass
class Case:
    """Has attributes that are no fields, and come by themselves."""

    name: str

    def __post_init__(self) -> None:
        self.size = len(self.name)

    @functools.cached_property
    def shouted(self) -> str:
        return self.name.upper()
