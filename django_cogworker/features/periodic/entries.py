"""All entries of this process: what `COGWORKER_PERIODIC` lists and what `@periodic` said.

An entry of the settings stands in the place of one of the same name that a decorator made. One that
cannot be used is left out and logged once; `manage.py check` names it as an error. It keeps no other
from running.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django_cogworker.conf import Config, default_zone, get_config
from django_cogworker.exceptions import CogworkerError, InvalidPeriodicEntry, UnknownPeriodicEntry
from django_cogworker.features.periodic.entry import Entry, make_entry

logger = logging.getLogger("django_cogworker")

_decorated: dict[str, dict[str, Any]] = {}
_held: tuple[Config, int, tuple[Entry, ...]] | None = None
_version = 0


def declare(name: str, given: dict[str, Any]) -> None:
    """Add what a decorator said. A module that is loaded anew says the same once more."""
    global _version
    other = _decorated.get(name)
    if other is not None and other["job"] != given["job"]:
        raise InvalidPeriodicEntry(
            f"periodic entry {name!r} belongs to {other['job']}; give {given['job']} another name=."
        )
    _decorated[name] = given
    _version += 1


def withdraw(name: str) -> None:
    """Forget a decorated entry (tests)."""
    global _version
    del _decorated[name]
    _version += 1


def declared() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every entry as it was written, unchecked."""
    given = {**_decorated, **get_config().periodic}
    yield from given.items()


def all_entries() -> tuple[Entry, ...]:
    """The entries that can be used."""
    global _held
    config = get_config()
    held = _held
    if held is not None and held[0] is config and held[1] == _version:
        return held[2]
    version, zone = _version, default_zone()
    found = []
    for name, given in declared():
        try:
            entry = checked(name, given, zone)
        except CogworkerError as error:
            logger.error("A periodic entry is left out: %s", error)
            continue
        found.append(entry)
    _held = (config, version, tuple(found))
    return _held[2]


def checked(name: str, given: Mapping[str, Any], zone: str | None = None) -> Entry:
    """The entry, if it can be used. Raises `InvalidPeriodicEntry`."""
    entry = make_entry(name, given, zone or default_zone())
    entry.payload()
    return entry


def all_or_error() -> tuple[Entry, ...]:
    """All entries. Raises `InvalidPeriodicEntry` for the first one that cannot be used: a test is to hear of it."""
    for name, given in declared():
        checked(name, given)
    return all_entries()


def find(name: str) -> Entry:
    """The entry of that name. Raises `UnknownPeriodicEntry`, also where it cannot be used."""
    for each in all_entries():
        if each.name == name:
            return each
    for found, given in declared():
        if found == name:
            try:
                return checked(name, given)
            except CogworkerError as error:
                raise UnknownPeriodicEntry(f"It cannot be used: {error}") from error
    known = ", ".join(sorted(each.name for each in all_entries())) or "none"
    raise UnknownPeriodicEntry(f"There is no periodic entry {name!r}. Known: {known}.")
