"""The features that are there, and who of them takes part in what."""

from __future__ import annotations

from typing import Any

from django.utils.module_loading import import_string

from django_cogworker.client import chain, hooks
from django_cogworker.features.base import Feature
from django_cogworker.jobs.options import declare, withdraw

#: One line a feature, the dotted path of its class; without any of them the core works all the same.
FEATURES: list[str] = [
    "django_cogworker.features.context.feature.Context",
    "django_cogworker.features.cancel.feature.CancelFeature",
    "django_cogworker.features.history.feature.HistoryFeature",
    "django_cogworker.features.unique.Unique",
    "django_cogworker.features.timeout.feature.Timeout",
    "django_cogworker.features.expiry.feature.Expiry",
    "django_cogworker.features.periodic.feature.Periodic",
    "django_cogworker.features.status.feature.StatusFeature",
    "django_cogworker.features.tasks.feature.TasksFeature",
    "django_cogworker.features.errors.feature.Errors",
    "django_cogworker.features.stacks.feature.Stacks",
]

_loaded: list[Feature] = []


def are_loaded() -> bool:
    """Whether the app is ready: before that, options of features are not known."""
    return bool(_loaded)


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


def server_middleware(*, plain: bool = False) -> list[Any]:
    """With `plain`, of those features alone that concern all jobs."""
    wanted = [each for each in _loaded if not (plain and each.concerns)]
    return [each for feature in wanted for each in feature.server_middleware]


def fields() -> frozenset[str]:
    """A job whose payload has none of these is plain: only features that concern all jobs are asked about it."""
    return frozenset().union(*(each.concerns for each in _loaded))


def concerns_all(hook: Any) -> bool:
    """Whether the feature that a hook belongs to concerns all jobs."""
    return not hook.__self__.concerns


def listeners() -> tuple[Any, ...]:
    return tuple(each for feature in _loaded for each in feature.listeners)


def _takes_part(feature: Feature, method: str) -> bool:
    return getattr(type(feature), method) is not getattr(Feature, method)
