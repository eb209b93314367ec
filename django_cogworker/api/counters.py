"""Numbers that features count."""

from __future__ import annotations

from django_cogworker.features import registry


def counters() -> dict[str, int]:
    """Each by its name, such as `expired`. At most one call to Redis for each feature that counts."""
    found: dict[str, int] = {}
    for hook in registry.taking_part("counters"):
        found.update(hook())
    return found
