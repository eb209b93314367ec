"""All job classes of this process, by the name that stands in payloads.

A name is looked up here and never imported: what lies in Redis cannot make a worker load code.
Modules are imported at start-up instead (`autodiscover`), so every process of a project knows the
same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.utils.module_loading import autodiscover_modules

from django_cogworker.client import hooks
from django_cogworker.exceptions import ConfigurationError, UnknownJob
from django_cogworker.payload import known_types

if TYPE_CHECKING:
    from django_cogworker.jobs.definition import Definition

_definitions: dict[str, Definition] = {}
#: alias -> the name that it stands for
_aliases: dict[str, str] = {}

#: Asked, with its payload, for the class of a job that is to run and is not known: they may import what they
#: know to be safe. What they raise is `UnknownJob`, with the reason.
loaders: list[Callable[[dict[str, Any]], Definition | None]] = []

#: The modules of each app that are looked through for jobs.
MODULES = ("jobs", "tasks")


def as_aliases(given: Iterable[Any]) -> tuple[str, ...]:
    """The aliases as a tuple. A single text is refused: it would be one alias a letter."""
    if isinstance(given, str):
        raise ConfigurationError(f"aliases={given!r}; allowed is a list of names: [{given!r}].")
    aliases = tuple(given)
    for alias in aliases:
        if not isinstance(alias, str) or not alias:
            raise ConfigurationError(f"aliases={aliases!r}; allowed is a list of names.")
    return aliases


def register(definition: Definition, aliases: tuple[str, ...] = ()) -> None:
    """Make a job class known. One of the same name is replaced: its module was loaded anew."""
    for alias in aliases:
        other = _aliases.get(alias, alias if alias in _definitions else None)
        if other is not None and other != definition.name:
            raise ConfigurationError(
                f"{definition.name} has the alias {alias!r}, which belongs to {other}."
            )
    _definitions[definition.name] = definition
    known_types.trust(getattr(definition.target, "__module__", ""))
    _aliases.pop(definition.name, None)
    _aliases.update(dict.fromkeys(aliases, definition.name))


def find(name: str) -> Definition:
    """The definition with that name or alias. Raises `UnknownJob`."""
    definition = _definitions.get(name)
    if definition is None:
        definition = _definitions.get(_aliases.get(name, ""))
    if definition is None:
        raise UnknownJob(
            f"No job class named {name!r} is known here. Jobs live in <app>/jobs.py of an installed app; "
            "aliases=[…] keeps an old name working."
        )
    return definition


def find_to_run(payload: dict[str, Any]) -> Definition:
    """The definition of a job that is to run now. Raises `UnknownJob`."""
    name = payload["class"]
    definition = _definitions.get(name)
    if definition is not None:
        return definition
    if lookup(name) is None:
        for load in loaders:
            definition = load(payload)
            if definition is not None:
                return definition
    return find(name)


def lookup(name: str) -> Definition | None:
    """The definition with that name or alias, if there is one."""
    try:
        return find(name)
    except UnknownJob:
        return None


def names() -> list[str]:
    """Every name that `find` knows, aliases included."""
    return list(_definitions) + list(_aliases)


def autodiscover() -> None:
    """Import `jobs` and `tasks` of every installed app."""
    autodiscover_modules(*MODULES)


def _sender(name: str) -> Any:
    definition = lookup(name)
    return None if definition is None else definition.target


hooks.find_sender = _sender
