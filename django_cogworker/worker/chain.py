"""The server middleware: the callables a job passes on its way to `perform`.

As with Django's `MIDDLEWARE`, each entry of `COGWORKER_SERVER_MIDDLEWARE` is a factory that takes
the next callable and returns one, made once a worker; the first listed is the outermost. A
middleware gets the job (a `Job` instance, or what `@job` made) and its payload. What it raises
counts as the job's failure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from django_cogworker.client.chain import load_middleware
from django_cogworker.conf import Config
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.features import registry as features
from django_cogworker.jobs.context import current_job

Perform = Callable[[Any, dict[str, Any]], Any]


def _innermost(job: Any, payload: dict[str, Any]) -> Any:
    perform = current_job().perform
    return None if perform is None else perform()


@dataclasses.dataclass(frozen=True, slots=True)
class ServerChain:
    """The chain of one worker, in its two lengths."""

    #: All middleware, that of features outside that of the project.
    whole: Perform
    #: That of plain jobs: without the middleware of features that do not concern them.
    plain: Perform


def is_bare(chain: Perform) -> bool:
    """Whether there is no middleware in the chain."""
    return chain is _innermost


def build_server_chain(config: Config) -> ServerChain:
    """The whole chain. Raises `ConfigurationError` for an entry that cannot be used."""
    own = load_middleware(config.server_middleware, "COGWORKER_SERVER_MIDDLEWARE")
    inner = _wrapped(_innermost, own)
    return ServerChain(
        _wrapped(inner, features.server_middleware()),
        _wrapped(inner, features.server_middleware(plain=True)),
    )


def _wrapped(chain: Perform, factories: Sequence[Any]) -> Perform:
    for factory in reversed(factories):
        chain = factory(chain)
        if not callable(chain):
            raise ConfigurationError(
                f"The server middleware {factory!r} returned {chain!r} instead of a callable."
            )
    return chain
