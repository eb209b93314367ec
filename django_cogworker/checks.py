"""System checks. Ids: `django_cogworker.E001` and on are wrong settings (one id a setting, see
`conf.SETTINGS`), E1xx what a setting names but cannot be loaded, W0xx what works but is unwise.
None of them talks to Redis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Warning

from django_cogworker import conf
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.parsers import EMBEDDED

TAG = "cogworker"


def check_settings(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Every setting's value."""
    found: list[CheckMessage] = []
    for each in conf.SETTINGS:
        try:
            each.read()
        except ConfigurationError as error:
            found.append(Error(str(error), id=f"django_cogworker.{each.check_id}"))
    found += [
        Warning(
            f"{name} is no setting of django-cogworker.",
            hint=f"Did you mean {near}?" if near else None,
            id="django_cogworker.W001",
        )
        for name, near in conf.unknown_settings()
    ]
    return found


def check_middleware(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """The dotted paths lead to something that can be called."""
    from django_cogworker.client.chain import load_middleware

    config = _config()
    if config is None:
        return []
    found: list[CheckMessage] = []
    for setting, paths, check_id in (
        ("COGWORKER_CLIENT_MIDDLEWARE", config.client_middleware, "E101"),
        ("COGWORKER_SERVER_MIDDLEWARE", config.server_middleware, "E102"),
        ("COGWORKER_DEATH_HANDLERS", config.death_handlers, "E103"),
    ):
        try:
            load_middleware(paths, setting)
        except ConfigurationError as error:
            found.append(Error(str(error), id=f"django_cogworker.{check_id}"))
    return found


def check_redis(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """The target can be made out, and no cache empties it."""
    from django_cogworker.store.target import resolve, same_place

    config = _config()
    if config is None:
        return []
    try:
        target = resolve(config)
    except ConfigurationError as error:
        return [Error(str(error), id="django_cogworker.E104")]
    found: list[CheckMessage] = []
    for alias, url in _cache_urls(config):
        if same_place(target, url):
            found.append(
                Warning(
                    f"The cache {alias!r} uses the same Redis database as the jobs ({target.description}): "
                    "cache.clear() deletes every job.",
                    hint="Give the cache or COGWORKER_REDIS another database number.",
                    id="django_cogworker.W002",
                )
            )
    if config.redis == EMBEDDED and not conf.is_debug():
        found.append(
            Warning(
                "COGWORKER_REDIS is 'embedded' while DEBUG is off: the embedded server is meant for "
                "development and serves one machine.",
                hint="Name a Redis or Valkey server in COGWORKER_REDIS.",
                id="django_cogworker.W003",
            )
        )
    return found


def check_other_apps(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Django Channels has a `runworker` too; which one wins depends on INSTALLED_APPS."""
    if not apps.is_installed("channels"):
        return []
    return [
        Warning(
            "Both django_cogworker and channels have a command named runworker.",
            hint="Start our worker with: manage.py runcogworker",
            id="django_cogworker.W004",
        )
    ]


def _config() -> conf.Config | None:
    try:
        return conf.get_config()
    except ConfigurationError:
        return None  # check_settings reports it


def _cache_urls(config: conf.Config) -> Iterator[tuple[str, str]]:
    for alias, location in conf.redis_cache_locations():
        yield from ((alias, each) for each in location)
