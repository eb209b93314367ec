"""The client middleware: the callables a payload passes on its way out.

As with Django's `MIDDLEWARE`, each entry is a factory that takes the next callable and returns one;
the first listed is the outermost. A middleware gets the payload (a dict, which it may change) and
returns what the next one returned: the jid, or `None` for "not enqueued". One that does not call
the next one keeps the job from being enqueued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.utils.module_loading import import_string

from django_cogworker.conf import PerConfig
from django_cogworker.exceptions import ConfigurationError

Push = Callable[[dict[str, Any]], str | None]
ClientMiddleware = Callable[[Push], Push]

#: Middleware of the features; they stand inside the app's own.
built_in: list[ClientMiddleware] = []


def load_middleware(paths: Iterable[str], setting: str) -> list[Any]:
    """The factories behind dotted paths; a path given twice counts once, at its later place."""
    wanted = list(paths)
    kept = [each for at, each in enumerate(wanted) if each not in wanted[at + 1 :]]
    factories = []
    for path in kept:
        try:
            factory = import_string(path)
        except ImportError as error:
            raise ConfigurationError(f"{setting} names {path!r}: {error}.") from error
        if not callable(factory):
            raise ConfigurationError(f"{setting} names {path!r}, which is not callable.")
        factories.append(factory)
    return factories


def _own_factories(config: Any) -> list[ClientMiddleware]:
    return load_middleware(config.client_middleware, "COGWORKER_CLIENT_MIDDLEWARE")


_configured = PerConfig(_own_factories)


def build_chain(innermost: Push) -> Push:
    """The whole chain around `innermost`."""
    push = innermost
    for factory in reversed([*_configured(), *built_in]):
        push = factory(push)
        if not callable(push):
            raise ConfigurationError(
                f"The client middleware {factory!r} returned {push!r} instead of a callable."
            )
    return push


def has_middleware() -> bool:
    return bool(built_in or _configured())
