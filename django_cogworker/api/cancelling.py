"""Cancelling jobs: the part of the feature `cancel`."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from django_cogworker.features.cancel.calling import cancel

acancel = sync_to_async(cancel, thread_sensitive=False)

__all__ = ["acancel", "cancel"]
