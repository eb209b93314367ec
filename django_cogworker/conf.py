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
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.core.signals import setting_changed

from django_cogworker.exceptions import ConfigurationError

T = TypeVar("T")

Parser = Callable[[Any], Any]

PREFIX = "COGWORKER_"
URL_SCHEMES = ("redis", "rediss", "unix")
EMBEDDED = "embedded"
#: The longest time that a setting may name: what a `timedelta` can hold.
MAX_SECONDS = timedelta.max.total_seconds()

#: What decides the wire protocol and our rules for time-outs and retries; a project cannot set it.
RESERVED_REDIS_OPTIONS = frozenset(
    {
        "client_name",
        "connection_class",
        "connection_pool",
        "decode_responses",
        "encoding",
        "max_connections",
        "protocol",
        "retry",
        "retry_on_error",
        "retry_on_timeout",
        "socket_connect_timeout",
        "socket_timeout",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class QueueWeight:
    """A queue that a worker reads, and how often it comes first compared with its neighbours."""

    name: str
    weight: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """All settings at one moment, checked and in the units that the code uses (seconds, bytes)."""

    redis: str | Mapping[str, Any]
    key_prefix: str
    concurrency: int
    queues: tuple[QueueWeight, ...]
    queue_order: str
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
    embedded_dir: Path | None
    embedded_binary: Path | None
    testing: str | None


# --- parsers ---------------------------------------------------------------------------------------


def _whole(minimum: int) -> Parser:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError(f"a whole number of at least {minimum}")
        return value

    return parse


def parse_seconds(value: Any) -> float:
    """Seconds from a number or a `timedelta`; zero and less are refused."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value <= MAX_SECONDS
    ):
        raise ValueError("a positive number of seconds, or a timedelta")
    return float(value)


def _one_of(*allowed: str) -> Parser:
    def parse(value: Any) -> str:
        if value not in allowed:
            raise ValueError(" or ".join(repr(each) for each in allowed))
        return str(value)

    return parse


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def _paths(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("a list of dotted paths")
    for each in value:
        if not isinstance(each, str) or "." not in each:
            raise ValueError(
                f"a list of dotted paths, such as 'shop.middleware.Tenant' (not {each!r})"
            )
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("a list of argument names")
    if not all(isinstance(each, str) and each for each in value):
        raise ValueError("a list of argument names")
    return tuple(value)


def _path(value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ValueError("a path, or None")
    return Path(value)


def _testing(value: Any) -> str | None:
    if value not in (None, "fake", "inline"):
        raise ValueError("None, 'fake' or 'inline'")
    return None if value is None else str(value)


def _prefix(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or " " in value:
        raise ValueError("a text without spaces, such as 'cogworker:'")
    return value


def check_queue_name(name: Any) -> str:
    """A queue's name as it may be: printable text without spaces, at most 200 characters.

    The endings that name a queue's other keys are refused: `a:priority` would be the list of one
    queue and the sorted set of another.
    """
    if not isinstance(name, str) or not name or len(name) > 200:
        raise ValueError("a queue's name is a text of 1 to 200 characters")
    if not name.isprintable() or any(each.isspace() for each in name):
        raise ValueError("a queue's name has no spaces and no control characters")
    if name.endswith((":priority", ":tokens")):
        raise ValueError("a queue's name does not end in ':priority' or ':tokens'")
    return name


def parse_queues(value: Any) -> tuple[QueueWeight, ...]:
    """Queues from a list (repeats are weights) or a mapping of name to weight."""
    allowed = "a list of queue names, or a mapping of queue name to weight (a whole number from 1)"
    weights: dict[str, int] = {}
    if isinstance(value, Mapping):
        for name, weight in value.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= 1000:
                raise ValueError(f"{allowed}, at most 1000 (not {weight!r} for {name!r})")
            weights[check_queue_name(name)] = weight
    elif isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(allowed)
    else:
        for name in value:
            weights[check_queue_name(name)] = weights.get(name, 0) + 1
    if not weights:
        raise ValueError(f"{allowed}; at least one queue")
    return tuple(QueueWeight(name, weight) for name, weight in weights.items())


def _redis(value: Any) -> str | Mapping[str, Any]:
    if isinstance(value, str):
        if value == EMBEDDED:
            return value
        if _scheme(value) not in URL_SCHEMES:
            raise ValueError(
                "a URL that begins with redis://, rediss:// or unix://, 'embedded', a dict of redis-py "
                "options, or {'cache': alias}"
            )
        _check_database(value)
        return value
    if isinstance(value, Mapping):
        return _redis_options(dict(value))
    raise ValueError("a URL, 'embedded', a dict of redis-py options, or {'cache': alias}")


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # an unfinished [ of an IPv6 address
        return ""


def _check_database(url: str) -> None:
    """redis-py takes database 0 for a path that is no number."""
    parts = urlsplit(url)
    path = parts.path.strip("/")
    if parts.scheme != "unix" and path and not (path.isascii() and path.isdecimal()):
        raise ValueError(
            "a URL whose path is the number of a database, such as redis://host:6379/0"
        )


def _redis_options(options: dict[str, Any]) -> Mapping[str, Any]:
    if "cache" in options:
        if len(options) > 1 or not isinstance(options["cache"], str):
            raise ValueError("{'cache': alias} with nothing beside it")
        return options
    reserved = sorted(RESERVED_REDIS_OPTIONS & options.keys())
    if reserved:
        raise ValueError(f"a dict of redis-py options without {', '.join(reserved)}, which we set")
    if not any(key in options for key in ("host", "url", "unix_socket_path")):
        raise ValueError("a dict of redis-py options with 'host', 'url' or 'unix_socket_path'")
    if "url" in options:
        if _scheme(str(options["url"])) not in URL_SCHEMES:
            raise ValueError("a 'url' that begins with redis://, rediss:// or unix://")
        _check_database(str(options["url"]))
    return options


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
                f"{self.name} is {_shown(value)}; allowed is {error}."
            ) from None


def _shown(value: Any) -> str:
    """The value for a message, without passwords. A URL may be too wrong to be taken apart."""
    if isinstance(value, Mapping):
        pairs = [
            f"{key!r}: {'***' if 'password' in str(key).lower() else _shown(each)}"
            for key, each in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, str):
        before, at, place = value.rpartition("@")
        scheme, slashes, _ = before.partition("://")
        shown = f"{scheme if slashes else ''}{slashes}***@{place}" if at else value
        return repr(re.sub(r"(password=)[^&]*", r"\1***", shown))
    return repr(value)


DAY = 86_400

SETTINGS: tuple[Setting, ...] = (
    Setting("redis", _redis_default, _redis, "E001"),
    Setting("key_prefix", "cogworker:", _prefix, "E002"),
    Setting("concurrency", 10, _whole(1), "E003"),
    Setting("queues", ("default",), parse_queues, "E004"),
    Setting("queue_order", "weighted", _one_of("weighted", "strict"), "E005"),
    Setting("fetch", "reliable", _one_of("reliable", "basic"), "E006"),
    Setting("shutdown_timeout", 25, parse_seconds, "E007"),
    Setting("orphan_threshold", 60, parse_seconds, "E008"),
    Setting("max_orphanings", 3, _whole(1), "E009"),
    Setting("dead_max_jobs", 10_000, _whole(1), "E010"),
    Setting("dead_max_age", 180 * DAY, parse_seconds, "E011"),
    Setting("client_middleware", (), _paths, "E012"),
    Setting("server_middleware", (), _paths, "E013"),
    Setting("death_handlers", (), _paths, "E014"),
    Setting("enqueue_on_commit", True, _flag, "E015"),
    Setting("payload_warn", 10_000, _whole(1), "E016"),
    Setting("payload_max", 1_000_000, _whole(100), "E017"),
    Setting("sensitive_arguments", ("password", "secret", "token"), _names, "E018"),
    Setting("embedded_dir", _embedded_dir_default, _path, "E019"),
    Setting("embedded_binary", None, _path, "E020"),
    Setting("testing", None, _testing, "E021"),
)

#: Settings that the design names and a later version reads; not an error to have them now.
LATER_SETTINGS = frozenset(
    f"{PREFIX}{each}"
    for each in ("UNIQUE_LOCK_TTL", "PERIODIC", "STATUS_EXPIRATION", "HISTORY", "ADMIN")
)


def is_debug() -> bool:
    return bool(settings.DEBUG)


def unknown_settings() -> list[tuple[str, str | None]]:
    """Names in the project's settings that begin like ours and are none, each with the nearest real
    one.
    """
    # Compared without what all of them begin with, which would make any two alike.
    known = {each.removeprefix(PREFIX) for each in LATER_SETTINGS}
    known |= {each.field.upper() for each in SETTINGS}
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
    if setting.startswith(PREFIX) or setting in {"BASE_DIR", "CACHES"}:
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
