"""What a setting's value may be: one parser a kind of value.

A parser turns what the project wrote into the value that the code uses, or raises `ValueError` with what
is allowed, so that a check can say: this setting is so and so; allowed is …
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Parser = Callable[[Any], Any]

URL_SCHEMES = ("redis", "rediss", "unix")
EMBEDDED = "embedded"
#: The longest time that a setting may name: what a `timedelta` can hold.
MAX_SECONDS = timedelta.max.total_seconds()

#: Bounds of the bounds: a hundred years; what Redis's memory may just bear.
MAX_HISTORY_DAYS = 36_500
MAX_HISTORY_RUNS = 10_000_000

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


def parse_whole(minimum: int, maximum: int | None = None) -> Parser:
    allowed = f"a whole number of at least {minimum}"
    if maximum is not None:
        allowed = f"a whole number from {minimum} to {maximum}"

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError(allowed)
        if maximum is not None and value > maximum:
            raise ValueError(allowed)
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


def parse_one_of(*allowed: str) -> Parser:
    def parse(value: Any) -> str:
        if value not in allowed:
            raise ValueError(" or ".join(repr(each) for each in allowed))
        return str(value)

    return parse


def parse_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def parse_paths(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("a list of dotted paths")
    for each in value:
        if not isinstance(each, str) or "." not in each:
            raise ValueError(
                f"a list of dotted paths, such as 'shop.middleware.Tenant' (not {each!r})"
            )
    return tuple(value)


def parse_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("a list of argument names")
    for each in value:
        if not isinstance(each, str) or not each.strip():
            raise ValueError(f"a list of argument names (not {each!r})")
    return tuple(each.strip() for each in value)


def parse_modules(value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise ValueError("a list of modules or packages")
    for each in value:
        if not isinstance(each, str) or not all(part.isidentifier() for part in each.split(".")):
            raise ValueError(f"a list of modules or packages, such as 'shop.types' (not {each!r})")
    return tuple(value)


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryKept:
    """How much of the history is kept: days, runs that succeeded, runs that failed, days of counters."""

    days: int = 30
    runs: int = 50_000
    failures: int = 10_000
    counter_days: int = 400


def parse_history(value: Any) -> HistoryKept | None:
    """`True` is the defaults, `False` no history, a mapping changes some of the bounds."""
    if isinstance(value, bool):
        return HistoryKept() if value else None
    names = [each.name for each in dataclasses.fields(HistoryKept)]
    allowed = f"True, False, or a mapping with {', '.join(map(repr, names))}: whole numbers from 1"
    if not isinstance(value, Mapping):
        raise ValueError(allowed)
    for name, number in value.items():
        if name not in names:
            raise ValueError(f"{allowed} (not {name!r})")
        most = MAX_HISTORY_DAYS if "days" in name else MAX_HISTORY_RUNS
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            raise ValueError(f"{allowed}, at most {most} (not {number!r} for {name!r})")
    return HistoryKept(**value)


def parse_path(value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ValueError("a path, or None")
    return Path(value)


def parse_testing(value: Any) -> str | None:
    if value not in (None, "fake", "inline"):
        raise ValueError("None, 'fake' or 'inline'")
    return None if value is None else str(value)


def parse_prefix(value: Any) -> str:
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


def parse_periodic(value: Any) -> Mapping[str, Any]:
    """The shape alone; what an entry says is checked by those who know jobs and cron lines."""
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) and isinstance(entry, Mapping) for name, entry in value.items()
    ):
        raise ValueError("a dict of name to entry, each a dict with 'job' and 'cron'")
    return dict(value)


def parse_queue_names(value: Any) -> tuple[str, ...]:
    """Names of queues, each once; there may be none."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise ValueError("a list of queue names")
    return tuple(dict.fromkeys(check_queue_name(each) for each in value))


def parse_redis(value: Any) -> str | Mapping[str, Any]:
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


def shown(value: Any) -> str:
    """The value for a message, without passwords. A URL may be too wrong to be taken apart."""
    if isinstance(value, Mapping):
        pairs = [
            f"{key!r}: {'***' if 'password' in str(key).lower() else shown(each)}"
            for key, each in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, str):
        before, at, place = value.rpartition("@")
        scheme, slashes, _ = before.partition("://")
        hidden = f"{scheme if slashes else ''}{slashes}***@{place}" if at else value
        return repr(re.sub(r"(password=)[^&]*", r"\1***", hidden))
    return repr(value)
