"""The features that are there, and who of them takes part in what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string

from django_cogworker.client import chain, hooks
from django_cogworker.features.base import Feature
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.options import declare, withdraw

#: One line a feature, the dotted path of its class; without any of them the core works all the same.
FEATURES: list[str] = [
    "django_cogworker.features.cancel.feature.CancelFeature",
    "django_cogworker.features.history.feature.HistoryFeature",
    "django_cogworker.features.unique.Unique",
    "django_cogworker.features.timeout.feature.Timeout",
    "django_cogworker.features.expiry.feature.Expiry",
    "django_cogworker.features.periodic.feature.Periodic",
    "django_cogworker.features.status.feature.StatusFeature",
]

Watch = Callable[[JobContext], Callable[[], None] | None]

_loaded: list[Feature] = []


def load() -> None:
    """Make the features known to the floors below. Called once, when the app is ready."""
    if not _loaded:
        for path in FEATURES:
            add(import_string(path)())


def add(feature: Feature) -> None:
    """Make one feature known."""
    _loaded.append(feature)
    for option in feature.options:
        declare(option)
    chain.built_in.extend(feature.client_middleware)
    if _takes_part(feature, "pushed"):
        hooks.push_hooks.append(feature.pushed)
    if _takes_part(feature, "refused"):
        hooks.refusal_hooks.append(feature.refused)


def remove(feature: Feature) -> None:
    """Take a feature out again (tests)."""
    _loaded.remove(feature)
    for option in feature.options:
        withdraw(option)
    for each in feature.client_middleware:
        chain.built_in.remove(each)
    if _takes_part(feature, "pushed"):
        hooks.push_hooks.remove(feature.pushed)
    if _takes_part(feature, "refused"):
        hooks.refusal_hooks.remove(feature.refused)


def taking_part(method: str) -> list[Any]:
    """The bound methods of that name of those features that have one of their own."""
    return [getattr(each, method) for each in _loaded if _takes_part(each, method)]


def method_beside(bound: Any, method: str) -> Any:
    """Another method of the feature that a bound method belongs to."""
    return getattr(bound.__self__, method)


def server_middleware() -> list[Any]:
    return [each for feature in _loaded for each in feature.server_middleware]


def server_middleware_of_all() -> list[Any]:
    """Without the one that is for jobs with certain fields alone."""
    wanted = [each for each in _loaded if not each.middleware_fields]
    return [each for feature in wanted for each in feature.server_middleware]


def middleware_fields() -> frozenset[str]:
    """A payload without any of these is served by `server_middleware_of_all` alone."""
    return frozenset().union(*(each.middleware_fields for each in _loaded))


def watchers() -> dict[str, tuple[Watch, ...]]:
    """Who watches jobs whose payload has that field."""
    found: dict[str, tuple[Watch, ...]] = {}
    for feature in _loaded:
        for field in feature.watched:
            found[field] = (*found.get(field, ()), feature.watch)
    return found


def listeners() -> tuple[Any, ...]:
    return tuple(each for feature in _loaded for each in feature.listeners)


def _takes_part(feature: Feature, method: str) -> bool:
    return getattr(type(feature), method) is not getattr(Feature, method)
