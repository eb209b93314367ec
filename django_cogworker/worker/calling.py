"""Calling what the project wrote, with as many arguments as it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def call_accepting(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` with the first of `args` that its signature has room for."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return function(*args)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return function(*args)
    room = sum(
        each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters
    )
    return function(*args[:room])
