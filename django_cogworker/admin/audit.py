"""Who did what: a log entry of the admin for each thing that an action changed.

It appears among the recent actions of the admin, and in whatever a project shows of its log entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.admin.models import LogEntry
    from django.db.models import Model

    from django_cogworker.admin.actions import Deed, Text
    from django_cogworker.admin.page import Page


def note(
    request: HttpRequest,
    page: Page,
    action: Deed,
    item: str,
    *,
    message: Text = "",
    model: type[Model] | None = None,
) -> LogEntry:
    """Write it. `item` is the name of what changed: a queue, a worker. The message is the action's, unless another is
    given, and the content type the page's.
    """
    from django.contrib.admin.models import CHANGE, DELETION, LogEntry
    from django.contrib.contenttypes.models import ContentType

    user: Any = request.user
    return LogEntry.objects.create(
        user_id=user.pk,
        content_type_id=ContentType.objects.get_for_model(model or page.log_model).pk,
        object_id=item,
        object_repr=(item or str(page.title))[:200],
        action_flag=DELETION if action.destroys else CHANGE,
        change_message=str(message or action.done),
    )
