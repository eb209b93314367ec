"""What the settings may be that map names to something; see `parsers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What of the context is no variable.
BUILT_IN_CONTEXT = ("language", "time_zone")


def parse_context(value: Any) -> Mapping[str, Any]:
    """Names of context variables, each with the dotted path of its variable."""
    allowed = "a dict of name to the dotted path of a context variable, and 'language' or 'time_zone' to True or False"
    if not isinstance(value, Mapping):
        raise ValueError(allowed)
    for name, each in value.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"{allowed} (not {name!r})")
        is_path = isinstance(each, str) and "." in each
        if not (isinstance(each, bool) if name in BUILT_IN_CONTEXT else is_path):
            raise ValueError(f"{allowed} (not {each!r} for {name!r})")
    return dict(value)


def parse_job_options(value: Any) -> Mapping[str, Any]:
    """The shape alone; what an option may be is known by who declared it."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError("a dict of options of a job, such as {'queue': 'mail', 'retry': 5}")
    return dict(value)


def parse_dotted_path(value: Any) -> str:
    if not isinstance(value, str) or "." not in value:
        raise ValueError("a dotted path, such as 'shop.mail.EmailBackend'")
    return value
