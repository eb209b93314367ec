"""Who did what: a log entry of the admin for each thing that an action changed.

It appears among the recent actions of the admin, and in whatever a project shows of its log entries. Like a log it
is English, whoever acted: those who read it later have other languages, and Django translates messages at
reading only where they name the fields of a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.http import HttpRequest
from django.utils import translation

if TYPE_CHECKING:
    from django.contrib.admin.models import LogEntry
    from django.db.models import Model

    from django_cogworker.admin.actions import Deed, Text
    from django_cogworker.admin.page import Page


T = TypeVar("T")


def in_english(make: Callable[[], T]) -> T:
    """What `make` returns in English."""
    with translation.override("en"):
        return make()


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
        object_repr=(item or in_english(lambda: str(page.title)))[:200],
        action_flag=DELETION if action.destroys else CHANGE,
        change_message=in_english(lambda: str(message or action.done)),
    )
