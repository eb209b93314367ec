"""What travels with a job of the surroundings in which it was enqueued, and how a job gets it back.

Language and time zone travel where they are not the project's own ones, the context variables that
`COGWORKER_CONTEXT` lists where they are set. What is not there travels not, so most jobs have no such field. A worker
restores what it lists itself; what it does not list stays unread.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone, translation
from django.utils.module_loading import import_string

from django_cogworker.conf import Config, PerConfig, default_language
from django_cogworker.exceptions import ArgumentError, ConfigurationError, InvalidPayload
from django_cogworker.payload.arguments import check_tags, pack, unpack

#: The payload's field, an object with `language`, `time_zone` and `values`, of each what there is.
FIELD = "context"

_UNSET = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Carried:
    """What the settings let travel."""

    language: bool
    time_zone: bool
    variables: Mapping[str, ContextVar[Any]]

    def taken(self) -> dict[str, Any]:
        """What is to travel from here, in wire form. Raises `ArgumentError` for a value that cannot."""
        found: dict[str, Any] = {}
        if self.language and (language := translation.get_language()) != default_language():
            found["language"] = language
        if self.time_zone:
            zone = timezone.get_current_timezone()
            if zone != timezone.get_default_timezone() and (text := _zone_text(zone)) is not None:
                found["time_zone"] = text
        for name, variable in self.variables.items():
            value = variable.get(_UNSET)
            if value is not _UNSET:
                found.setdefault("values", {})[name] = _packed(name, variable, value)
        return found

    @contextmanager
    def restored(self, found: Any) -> Iterator[None]:
        """Surroundings as they were, to the end of the block; then again as they are now."""
        if not isinstance(found, dict) or not isinstance(found.get("values", {}), dict):
            raise InvalidPayload(
                f"The payload's field {FIELD!r} is {found!r}, which nobody can restore."
            )
        with ExitStack() as stack:
            if self.language and "language" in found:
                stack.enter_context(translation.override(found["language"]))
            if self.time_zone and "time_zone" in found:
                stack.enter_context(timezone.override(_zone(found["time_zone"])))
            for name, packed in found.get("values", {}).items():
                variable = self.variables.get(name)
                if variable is not None:
                    stack.callback(variable.reset, variable.set(unpack(packed)))
            yield


def _packed(name: str, variable: ContextVar[Any], value: Any) -> Any:
    packed = pack(value, f"COGWORKER_CONTEXT[{name!r}]")
    if check_tags({"args": [packed]}):
        raise ArgumentError(
            f"COGWORKER_CONTEXT[{name!r}] ({variable.name}) holds a model instance; let the variable hold its key."
        )
    return packed


def _zone_text(zone: dt.tzinfo) -> str | float | None:
    """A name, or the seconds of a fixed offset; nothing where it is neither."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str):
        return name
    offset = zone.utcoffset(None)
    return None if offset is None else offset.total_seconds()


def _zone(text: Any) -> dt.tzinfo:
    if isinstance(text, str):
        return ZoneInfo(text)
    return dt.timezone(dt.timedelta(seconds=text))


def build(config: Config) -> Carried:
    """Raises `ConfigurationError` for a path that leads to no context variable."""
    wanted = dict(config.context)
    language, zone = wanted.pop("language", True), wanted.pop("time_zone", True)
    return Carried(language, zone, {name: _variable(name, path) for name, path in wanted.items()})


def _variable(name: str, path: str) -> ContextVar[Any]:
    try:
        found = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"COGWORKER_CONTEXT[{name!r}] names {path!r}: {error}.") from error
    if not isinstance(found, ContextVar):
        raise ConfigurationError(
            f"COGWORKER_CONTEXT[{name!r}] names {path!r}, which is no contextvars.ContextVar but a "
            f"{type(found).__qualname__}."
        )
    return found


carried: PerConfig[Carried] = PerConfig(build)
