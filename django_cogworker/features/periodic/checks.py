"""System checks of the entries: E130 for what cannot be used, W030 for what is mostly a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning

from django_cogworker.exceptions import CogworkerError, ConfigurationError
from django_cogworker.features.periodic import entries


def check_entries(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Cron line, zone, job, arguments and options of every entry."""
    found: list[CheckMessage] = []
    try:
        declared = list(entries.declared())
    except ConfigurationError:
        return []  # check_settings reports it
    for name, given in declared:
        try:
            entry = entries.checked(name, given)
        except CogworkerError as error:
            text = str(error)
            found.append(Error(text[:1].upper() + text[1:], id="django_cogworker.E130"))
            continue
        if entry.cron.looks_mistaken:
            found.append(
                Warning(
                    f"Periodic entry {name!r} is due every minute of some hours: {entry.cron.line!r}.",
                    hint="Did you mean 0 in the field of the minutes? A cron line that is meant so can "
                    "say 0-59 there.",
                    id="django_cogworker.W030",
                )
            )
    return found
