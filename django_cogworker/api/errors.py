"""What the feature `errors` tells: failures, counted in groups."""

from __future__ import annotations

from django_cogworker.features.errors.reading import (
    ErrorGroup,
    ErrorGroupPage,
    error_group,
    error_groups,
    forget_error_group,
)

__all__ = ["ErrorGroup", "ErrorGroupPage", "error_group", "error_groups", "forget_error_group"]
