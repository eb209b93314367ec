"""System check of `COGWORKER_CONTEXT`: E160 for a path that leads to no context variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from django_cogworker.conf import get_config
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.features.context.carried import build


def check_context(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Each path leads to a context variable."""
    try:
        config = get_config()
    except ConfigurationError:
        return []  # check_settings reports it
    try:
        build(config)
    except ConfigurationError as error:
        return [Error(str(error), id="django_cogworker.E160")]
    return []
