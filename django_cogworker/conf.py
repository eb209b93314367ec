"""The settings, read in one place.

Nothing else in the package reads `django.conf.settings`. Each setting is one row of `SETTINGS`: its
name, its default, and a parser that turns what the project wrote into the value we use, or raises
`ValueError` with what is allowed. The rows become one immutable `Config`, built at first use and
dropped when a test changes a setting, so `override_settings` works for each. The system checks walk
the same rows.

What is costly to build from a `Config` (pools, chains) is kept by `PerConfig` until the config
changes.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import django
from django.conf import settings
from django.core.signals import setting_changed

from django_cogworker.exceptions import ConfigurationError
from django_cogworker.mappings import parse_context, parse_dotted_path, parse_job_options
from django_cogworker.parsers import (
    HistoryKept,
    Parser,
    QueueWeight,
    parse_flag,
    parse_history,
    parse_modules,
    parse_names,
    parse_one_of,
    parse_path,
    parse_paths,
    parse_periodic,
    parse_prefix,
    parse_queue_names,
    parse_queues,
    parse_redis,
    parse_seconds,
    parse_testing,
    parse_whole,
    shown,
)

T = TypeVar("T")

PREFIX = "COGWORKER_"


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """All settings at one moment, checked and in the units that the code uses (seconds, bytes)."""

    redis: str | Mapping[str, Any]
    key_prefix: str
    concurrency: int
    queues: tuple[QueueWeight, ...]
    queue_order: str
    async_queues: tuple[str, ...]
    async_concurrency: int
    fetch: str
    shutdown_timeout: float
    orphan_threshold: float
    max_orphanings: int
    dead_max_jobs: int
    dead_max_age: float
    client_middleware: tuple[str, ...]
    server_middleware: tuple[str, ...]
    death_handlers: tuple[str, ...]
    enqueue_on_commit: bool
    payload_warn: int
    payload_max: int
    sensitive_arguments: tuple[str, ...]
    argument_modules: tuple[str, ...]
    context: Mapping[str, Any]
    email_backend: str
    email_options: Mapping[str, Any]
    unique_lock_ttl: float
    embedded_dir: Path | None
    embedded_binary: Path | None
    timeout_grace: float
    periodic: Mapping[str, Any]
    testing: str | None
    history: HistoryKept | None
    status_expiration: float
    admin: bool
    runserver: bool

    @property
    def processor_queues(self) -> tuple[QueueWeight, ...]:
        """The queues that processors serve: all but those of the event loop."""
        if not self.async_queues:
            return self.queues
        return tuple(each for each in self.queues if each.name not in self.async_queues)

    @property
    def read_queues(self) -> list[str]:
        """The names of all queues that a worker reads."""
        return [*(each.name for each in self.processor_queues), *self.async_queues]


def _redis_default() -> str:
    for name in ("COGWORKER_REDIS_URL", "REDIS_URL"):
        if os.environ.get(name):
            return os.environ[name]
    return "redis://localhost:6379/0"


def _embedded_dir_default() -> Path | None:
    base = getattr(settings, "BASE_DIR", None)
    return None if base is None else Path(base) / ".cogworker"


# --- the table -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One row: `COGWORKER_<NAME>`, its default, its parser and the id of its system check."""

    field: str
    default: Any
    parse: Parser
    check_id: str

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.field.upper()}"

    def found(self) -> Any:
        """What the project wrote, or the default."""
        default = self.default() if callable(self.default) else self.default
        return getattr(settings, self.name, default)

    def read(self) -> Any:
        value = self.found()
        try:
            return self.parse(value)
        except ValueError as error:
            raise ConfigurationError(
                f"{self.name} is {shown(value)}; allowed is {error}."
            ) from None


DAY = 86_400
SMTP = "django.core.mail.backends.smtp.EmailBackend"

SETTINGS: tuple[Setting, ...] = (
    Setting("redis", _redis_default, parse_redis, "E001"),
    Setting("key_prefix", "cogworker:", parse_prefix, "E002"),
    Setting("concurrency", 10, parse_whole(1), "E003"),
    Setting("queues", ("default",), parse_queues, "E004"),
    Setting("queue_order", "weighted", parse_one_of("weighted", "strict"), "E005"),
    Setting("fetch", "reliable", parse_one_of("reliable", "basic"), "E006"),
    Setting("shutdown_timeout", 25, parse_seconds, "E007"),
    Setting("orphan_threshold", 60, parse_seconds, "E008"),
    Setting("max_orphanings", 3, parse_whole(1), "E009"),
    Setting("dead_max_jobs", 10_000, parse_whole(1), "E010"),
    Setting("dead_max_age", 180 * DAY, parse_seconds, "E011"),
    Setting("client_middleware", (), parse_paths, "E012"),
    Setting("server_middleware", (), parse_paths, "E013"),
    Setting("death_handlers", (), parse_paths, "E014"),
    Setting("enqueue_on_commit", True, parse_flag, "E015"),
    Setting("payload_warn", 10_000, parse_whole(1), "E016"),
    Setting("payload_max", 1_000_000, parse_whole(100), "E017"),
    Setting("sensitive_arguments", ("password", "secret", "token"), parse_names, "E018"),
    Setting("argument_modules", (), parse_modules, "E060"),
    Setting("context", dict, parse_context, "E061"),
    Setting("email_backend", SMTP, parse_dotted_path, "E062"),
    Setting("email_options", dict, parse_job_options, "E063"),
    Setting("unique_lock_ttl", DAY, parse_seconds, "E022"),
    Setting("embedded_dir", _embedded_dir_default, parse_path, "E019"),
    Setting("embedded_binary", None, parse_path, "E020"),
    Setting("timeout_grace", 30, parse_seconds, "E031"),
    Setting("periodic", dict, parse_periodic, "E023"),
    Setting("testing", None, parse_testing, "E021"),
    Setting("history", True, parse_history, "E025"),
    Setting("status_expiration", 1_800, parse_seconds, "E027"),
    Setting("async_queues", (), parse_queue_names, "E033"),
    Setting("async_concurrency", 100, parse_whole(1, 10_000), "E034"),
    Setting("admin", True, parse_flag, "E036"),
    Setting("runserver", False, parse_flag, "E041"),
)


def default_zone() -> str:
    """Django's `TIME_ZONE`, whether or not `USE_TZ` is on."""
    return str(settings.TIME_ZONE or "UTC")


def default_language() -> str:
    """Django's `LANGUAGE_CODE`."""
    return str(settings.LANGUAGE_CODE)


def is_debug() -> bool:
    return bool(settings.DEBUG)


def wants_worker_in_runserver() -> bool:
    """Asked while the apps are loaded, when a wrong value is no error yet."""
    return getattr(settings, "COGWORKER_RUNSERVER", False) is True


def unknown_settings() -> list[tuple[str, str | None]]:
    """Names in the project's settings that begin like ours and are none, each with the nearest real
    one.
    """
    # Compared without what all of them begin with, which would make any two alike.
    known = {each.field.upper() for each in SETTINGS}
    found = [each.removeprefix(PREFIX) for each in dir(settings) if each.startswith(PREFIX)]
    unknown = [(each, difflib.get_close_matches(each, known, 1)) for each in found]
    return [
        (PREFIX + each, PREFIX + near[0] if near else None)
        for each, near in unknown
        if each not in known
    ]


def redis_cache_locations() -> list[tuple[str, list[str]]]:
    """Alias and server URLs of each cache that is kept in Redis."""
    found = []
    for alias, cache in settings.CACHES.items():
        if "redis" not in str(cache.get("BACKEND", "")).lower():
            continue
        location = cache.get("LOCATION") or []
        urls = location.split(",") if isinstance(location, str) else list(location)
        found.append((alias, [str(each).strip() for each in urls]))
    return found


def mailers() -> Mapping[str, Any]:
    """Django's `MAILERS`, from 6.1 on; empty where the project has none."""
    found = getattr(settings, "MAILERS", None) if django.VERSION >= (6, 1) else None
    return found if isinstance(found, Mapping) else {}


# --- the current config ----------------------------------------------------------------------------

_config: Config | None = None


def get_config() -> Config:
    """The settings as they are now. Raises `ConfigurationError` for the first wrong one."""
    global _config
    config = _config
    if config is None:
        config = _config = Config(**{each.field: each.read() for each in SETTINGS})
    return config


def use_config(config: Config) -> None:
    """Make `config` the one that counts in this process: the worker's command line overrides
    settings.
    """
    global _config
    _config = config


def _forget(*, setting: str, **_kwargs: Any) -> None:
    global _config
    if setting.startswith(PREFIX) or setting in {"BASE_DIR", "CACHES", "TIME_ZONE"}:
        _config = None


setting_changed.connect(_forget, dispatch_uid="django_cogworker.conf")


class PerConfig(Generic[T]):
    """A value built from the config at first use, and built anew when the config has changed.

    `drop` is called with the old value, to close what it holds.
    """

    def __init__(
        self, build: Callable[[Config], T], drop: Callable[[T], None] | None = None
    ) -> None:
        self._build = build
        self._drop = drop
        self._held: tuple[Config, T] | None = None
        self._renew_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        """Also after a fork, which may copy the lock while another thread holds it."""
        self._lock = threading.Lock()

    def __call__(self) -> T:
        config = get_config()
        held = self._held
        if held is not None and held[0] is config:
            return held[1]
        with self._lock:
            held = self._held
            if held is not None and held[0] is config:
                return held[1]
            value = self._build(config)
            self._held = (config, value)
        if held is not None and self._drop is not None:
            self._drop(held[1])
        return value

    def peek(self) -> T | None:
        """The value if it was built, whatever the config is now."""
        held = self._held
        return None if held is None else held[1]
