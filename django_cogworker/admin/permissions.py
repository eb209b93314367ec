"""Who may do what. The permissions belong to the model `Overview`; `view_jobs` opens the pages, each action has
one of its own, and `manage_jobs` includes them all.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

APP = "django_cogworker"

VIEW = "view_jobs"
MANAGE = "manage_jobs"
PAUSE_QUEUES = "pause_queues"
CLEAR_QUEUES = "clear_queues"
STEER_PERIODIC = "steer_periodic"
STEER_WORKERS = "steer_workers"
RETRY_JOBS = "retry_jobs"
MOVE_JOBS = "move_jobs"
DELETE_JOBS = "delete_jobs"


def has(request: HttpRequest, permission: str) -> bool:
    """Whether whoever asks has that permission, or `manage_jobs`. A name with a dot is another app's."""
    user: Any = request.user
    if user.has_perm(f"{APP}.{MANAGE}"):
        return True
    return bool(user.has_perm(permission if "." in permission else f"{APP}.{permission}"))
