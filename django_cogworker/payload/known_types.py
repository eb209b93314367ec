"""The classes of a project whose values may travel: enums and dataclasses, by their path.

A path is `module:Qual.Name`. What lies in Redis must not make a process load code that nobody meant for it, so a path
counts only where its module is

* inside an installed app (its package, or a module of it),
* one in which a job class was found (`trust`, called by the registry of job classes), or
* named by `COGWORKER_ARGUMENT_MODULES`, or inside a package that is.

The same rule holds at the call, so that what could not be read is not sent. A module that the rule allows is imported
when it is needed; nothing is taken from it but a class that calls itself by that very path.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from django.apps import apps

from django_cogworker.conf import get_config
from django_cogworker.exceptions import ArgumentError, UnknownFormat

CURE = (
    "enums, dataclasses and messages travel where their class stands at the top of a module of an installed app, of "
    "one with job classes, or of one that COGWORKER_ARGUMENT_MODULES names"
)

_trusted: set[str] = set()


def trust(module: str) -> None:
    """Let the classes of a module travel, for it has job classes."""
    if module != "__main__":  # no other process has the same one
        _trusted.add(module)


def may_travel(module: str) -> bool:
    """Whether the classes of that module may travel."""
    if module in _trusted:
        return True
    if any(_is_inside(module, each.name) for each in apps.get_app_configs()):
        return True
    return any(_is_inside(module, each) for each in get_config().argument_modules)


def _is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def path_of(kind: type, where: str) -> str:
    """The path of a class. Raises `ArgumentError` with `where` as the value's name, if no worker could find it."""
    path = f"{kind.__module__}:{kind.__qualname__}"
    try:
        found = may_travel(kind.__module__) and _found(path) is kind
    except UnknownFormat:
        found = False
    if not found:
        raise ArgumentError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, which a worker could not find: {CURE}."
        )
    return path


def find(path: Any) -> type:
    """The class with that path. Raises `UnknownFormat` where this process has none, or must not look for it."""
    module, colon, _ = str(path).partition(":")
    if not colon or not may_travel(module):
        raise UnknownFormat(f"An argument is a {path!r}, which is not allowed here: {CURE}.")
    found = _found(path)
    if not isinstance(found, type) or f"{found.__module__}:{found.__qualname__}" != path:
        raise UnknownFormat(f"An argument is a {path!r}, which is no class by that name here.")
    return found


def _found(path: str) -> Any:
    module, _, names = path.partition(":")
    try:
        found: Any = sys.modules.get(module) or import_module(module)
    except Exception as error:  # also what the module itself raises
        raise UnknownFormat(
            f"An argument is a {path!r}, which cannot be imported: {error}."
        ) from error
    for name in names.split("."):
        found = vars(found).get(name) if isinstance(found, type) else getattr(found, name, None)
        if found is None:
            raise UnknownFormat(f"An argument is a {path!r}, which this process does not have.")
    return found
