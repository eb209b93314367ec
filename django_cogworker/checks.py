"""System checks. Ids: `django_cogworker.E001` and on are wrong settings (one id a setting, see
`conf.SETTINGS`), E1xx what a setting names but cannot be loaded, W0xx what works but is unwise.
None of them talks to Redis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Warning

from django_cogworker import conf
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.parsers import EMBEDDED

if TYPE_CHECKING:
    from django_cogworker.worker.databases import Database

TAG = "cogworker"
#: Advice for workers: `runworker` asks for it, and `check --deploy`.
WORKER_TAG = "cogworker_worker"


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


def check_mail(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Mails that jobs are made of can be sent by those jobs."""
    from django_cogworker.mail.job import SendEmail, check_sender
    from django_cogworker.mail.mailers import problems

    config = _config()
    if config is None:
        return []
    try:
        SendEmail.set(**config.email_options)
        check_sender(config.email_backend)
    except ConfigurationError as error:
        return [Error(str(error), id="django_cogworker.E107")]
    return [Error(each, id="django_cogworker.E107") for each in problems()]


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


def check_runserver(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """A worker inside of `runserver` is for development."""
    config = _config()
    if config is None or not config.runserver or conf.is_debug():
        return []
    return [
        Warning(
            "COGWORKER_RUNSERVER is True while DEBUG is off: only runserver brings a worker, and that is no "
            "server for production.",
            hint="Start workers with: manage.py runworker",
            id="django_cogworker.W041",
        )
    ]


def check_databases(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Connections that are made anew for each job, that may be broken, or that are too few."""
    config = _config()
    if config is None:
        return []
    from django_cogworker.worker.databases import databases

    threads = config.concurrency + bool(config.async_queues)
    return [each for db in databases() for each in _about_database(db, threads)]


def _about_database(db: Database, threads: int) -> Iterator[CheckMessage]:
    if not db.pooled and db.max_age == 0 and not conf.is_debug():
        yield Warning(
            f"CONN_MAX_AGE of the database {db.alias!r} is 0: a worker opens a new connection for each job.",
            hint="Set it to some minutes, such as 600, or use a pool.",
            id="django_cogworker.W042",
        )
    if (db.pooled or db.max_age != 0) and not db.health_checks and not conf.is_debug():
        yield Warning(
            f"CONN_HEALTH_CHECKS of the database {db.alias!r} is off: after a restart of the database jobs "
            "fail with the connections that were kept.",
            hint="Set it to True.",
            id="django_cogworker.W043",
        )
    if db.pooled and db.pool_size < threads:
        yield Warning(
            f"The pool of the database {db.alias!r} has at most {db.pool_size} connections, and {threads} "
            "threads of a worker share it: jobs wait for each other's, and fail when that lasts.",
            hint=f"Set max_size of the pool to {threads}, or COGWORKER_CONCURRENCY lower. Each process has a "
            "pool of its own.",
            id="django_cogworker.W044",
        )


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
