"""Where Redis is: the setting `COGWORKER_REDIS` in any of its forms, brought to one.

A `Target` is a redis-py connection class with the arguments for it, and a description without
credentials for log lines and pages. Making one opens no connection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import redis
from django.core.exceptions import ImproperlyConfigured
from redis.connection import parse_url

from django_cogworker.conf import Config
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.parsers import EMBEDDED

#: What a pool of django-redis adds to its arguments for its own sake, or what we set ourselves.
_FOREIGN_KEYS = frozenset(
    {
        "himport_registry",
        "maint_notifications_pool_handler",
        "maint_notifications_config",
        "orig_host_address",
        "orig_socket_timeout",
        "orig_socket_connect_timeout",
        "event_dispatcher",
        "socket_timeout",
        "socket_connect_timeout",
        "retry",
        "retry_on_error",
        "retry_on_timeout",
        "protocol",
        "client_name",
        "decode_responses",
        "encoding",
        "encoding_errors",
        "parser_class",
        "max_connections",
        "connection_class",
        "driver_info",
        "lib_name",
        "lib_version",
    }
)

_LOOPBACK = ("127.0.0.1", "::1")


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A server and database, ready for a pool."""

    connection_class: type[Any]
    options: Mapping[str, Any]
    description: str

    @property
    def place(self) -> tuple[str, int]:
        """Server and database: two targets with the same place share their keys."""
        options = self.options
        host = str(options.get("host", "localhost"))
        host = "localhost" if host in _LOOPBACK else host
        server = options.get("path") or f"{host}:{options.get('port', 6379)}"
        return str(server), int(options.get("db") or 0)


def resolve(config: Config) -> Target:
    """The target that the config names. Raises `ConfigurationError` where that is impossible."""
    setting = config.redis
    if setting == EMBEDDED:
        return _embedded(config)
    if isinstance(setting, str):
        return _from_url(setting, {})
    if "cache" in setting:
        return from_cache(str(setting["cache"]))
    options = dict(setting)
    url = options.pop("url", None)
    if url is not None:
        return _from_url(str(url), options)
    return _from_options(options)


def _from_url(url: str, more: Mapping[str, Any]) -> Target:
    try:
        options: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError as error:
        # A password with a slash that is not escaped ends up in the port, and so in the message.
        why = "its port is not a number" if "Port could not be cast" in str(error) else error
        raise ConfigurationError(f"COGWORKER_REDIS: the URL cannot be read: {why}.") from None
    kind = options.pop("connection_class", redis.Connection)
    options = {k: v for k, v in options.items() if k not in _FOREIGN_KEYS} | dict(more)
    return _target(kind, options)


def _from_options(options: dict[str, Any]) -> Target:
    kind: type[Any] = redis.Connection
    if "unix_socket_path" in options:
        options["path"] = options.pop("unix_socket_path")
        kind = redis.UnixDomainSocketConnection
    elif options.pop("ssl", False):
        kind = redis.SSLConnection
    return _target(kind, options)


def _target(kind: type[Any], options: dict[str, Any]) -> Target:
    """Tried out before it is used: a connection that is made but not opened takes no time."""
    try:
        options["db"] = int(options.get("db") or 0)
        kind(**options)
    except (TypeError, ValueError, redis.RedisError) as error:
        raise ConfigurationError(
            f"COGWORKER_REDIS has options that redis-py does not take: {error}."
        ) from None
    return Target(kind, options, _describe(kind, options))


def from_cache(alias: str) -> Target:
    """The server behind a django-redis cache alias; the pool is our own, not the cache's."""
    from django.core.cache import InvalidCacheBackendError, caches

    try:
        cache = caches[alias]
        client = getattr(cache, "client", None)
        if client is None or not hasattr(client, "get_client"):
            raise ConfigurationError(
                f"COGWORKER_REDIS names the cache {alias!r}, which is not a django-redis cache "
                f"but {type(cache).__module__}.{type(cache).__qualname__}."
            )
        pool = client.get_client(write=True).connection_pool
    except InvalidCacheBackendError as error:
        raise ConfigurationError(
            f"COGWORKER_REDIS names the cache {alias!r}, which CACHES does not have: {error}."
        ) from None
    except (ImproperlyConfigured, ImportError, ValueError) as error:
        raise ConfigurationError(
            f"COGWORKER_REDIS names the cache {alias!r}, which cannot be used: {error}."
        ) from None
    options = {k: v for k, v in pool.connection_kwargs.items() if k not in _FOREIGN_KEYS}
    return _target(pool.connection_class, options)


def _embedded(config: Config) -> Target:
    from django_cogworker.store.embedded_connection import EmbeddedConnection

    if config.embedded_dir is None:
        raise ConfigurationError(
            "COGWORKER_REDIS is 'embedded', but there is neither COGWORKER_EMBEDDED_DIR nor BASE_DIR; "
            "set COGWORKER_EMBEDDED_DIR to a folder that this project may write."
        )
    options = {"directory": config.embedded_dir, "binary": config.embedded_binary}
    return Target(EmbeddedConnection, options, f"embedded server in {config.embedded_dir}")


def _describe(kind: type, options: Mapping[str, Any]) -> str:
    db = options.get("db") or 0
    if issubclass(kind, redis.UnixDomainSocketConnection):
        return f"unix://{options.get('path')}?db={db}"
    scheme = "rediss" if issubclass(kind, redis.SSLConnection) else "redis"
    return f"{scheme}://{options.get('host', 'localhost')}:{options.get('port', 6379)}/{db}"


def same_place(target: Target, url: str) -> bool:
    """Whether `url` names the server and database of `target`."""
    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        return False
    try:
        return _from_url(url, {}).place == target.place
    except ConfigurationError:
        return False
