"""The entries of Django's `MAILERS` (from 6.1 on), looked at without sending anything.

An entry of ours names another one that sends. `check_mailer` is asked by each call and by `manage.py check`, so that
both say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core import mail
from django.utils.module_loading import import_string

from django_cogworker import conf
from django_cogworker.exceptions import ConfigurationError

#: What Django takes where an entry names no class.
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def mailer_options(alias: str | None) -> str:
    """How an error calls the options of an entry; those of a backend that code has made have no alias."""
    return "EmailBackend" if alias is None else f"MAILERS[{alias!r}]['OPTIONS']"


def check_mailer(mailer: Any, alias: str | None) -> None:
    """Raise `ConfigurationError` where the jobs of the entry `alias` could not send with the entry `mailer`."""
    entries = conf.mailers()
    owner = f"{mailer_options(alias)}['mailer'] is {mailer!r}"
    if mailer == alias:
        raise ConfigurationError(
            f"{owner}, which is this entry itself, and makes a job of each mail again; name one that sends."
        )
    if not isinstance(mailer, str) or mailer not in entries:
        known = ", ".join(repr(each) for each in entries if each != alias) or "none"
        raise ConfigurationError(
            f"{owner}, which MAILERS does not have; name the entry that sends. Others are: {known}."
        )
    try:
        kind = _class_of(entries[mailer])
    except ImportError as error:
        raise ConfigurationError(f"{owner}, whose BACKEND cannot be imported: {error}.") from error
    if getattr(kind, "makes_jobs", False):
        raise ConfigurationError(
            f"{owner}, which makes a job of each mail again; name one that sends."
        )


def problems() -> Iterator[str]:
    """What is wrong with each entry that makes jobs."""
    mailers: Any = getattr(mail, "mailers", None)
    for alias, entry in conf.mailers().items():
        try:
            makes_jobs = getattr(_class_of(entry), "makes_jobs", False)
        except ImportError:  # no matter of ours: nobody knows what it is
            continue
        if not makes_jobs:
            continue
        try:
            mailers[alias]
        except Exception as error:  # Django's about options that there are not, too
            text = str(error)
            named = f"MAILERS[{alias!r}]" in text
            yield text if named else f"MAILERS[{alias!r}]: {text}"


def _class_of(entry: Any) -> Any:
    """Raises `ImportError`."""
    path = entry.get("BACKEND", SMTP) if isinstance(entry, Mapping) else None
    return import_string(path) if isinstance(path, str) else None
