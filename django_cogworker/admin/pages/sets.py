"""Scheduled, Retries, Dead: jobs that wait for their time, for another attempt, or for somebody to look at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.page import Context
from django_cogworker.admin.waiting.deeds import (
    DELETE,
    KILL,
    MOVE,
    RESCHEDULE,
    RETRY,
    RETRY_NOW,
    RUN_NOW,
)
from django_cogworker.admin.waiting.page import JobsPage
from django_cogworker.api.shelf import Shelf
from django_cogworker.models import Dead, Retry, Scheduled


class SetPage(JobsPage):
    """One of the three sets. Rows of the table are `SortedEntry`."""

    template = "cogworker/set.html"
    interval = 10
    filters: ClassVar[Sequence[str]] = (
        "q",
        "class",
        "args",
        "jid",
        "error",
        "queue",
        "tag",
        "error_group",
    )
    #: Heading of the time, what stands where there is nothing, and whether these jobs have failed.
    when: ClassVar[Any]
    empty: ClassVar[Any]
    failed: ClassVar[bool] = True
    kind: ClassVar[type[Any]]

    def shelf(self, of: str) -> Shelf[Any]:
        found: Shelf[Any] = self.kind()
        return found

    def refreshes(self, request: HttpRequest) -> bool:
        return not self.stands_still(request)

    def context(self, request: HttpRequest) -> Context:
        return {"when": self.when, "failed": self.failed, **self.jobs(request)}


class ScheduledPage(SetPage):
    """The next due job first."""

    name = "scheduled"
    title = gettext_lazy("Scheduled")
    model = Scheduled
    kind = api.ScheduledSet
    filters = ("q", "class", "args", "jid", "queue", "tag")
    when = gettext_lazy("Due")
    empty = gettext_lazy("No job waits for its time.")
    failed = False
    actions = (RUN_NOW, RESCHEDULE, MOVE, DELETE)


class RetriesPage(SetPage):
    """The next due job first."""

    name = "retry"
    title = gettext_lazy("Retries")
    model = Retry
    kind = api.RetrySet
    when = gettext_lazy("Next attempt")
    empty = gettext_lazy("No job waits for another attempt.")
    actions = (RETRY_NOW, RESCHEDULE, MOVE, KILL, DELETE)


class DeadPage(SetPage):
    """The one that died last first."""

    name = "dead"
    title = gettext_lazy("Dead")
    model = Dead
    kind = api.DeadSet
    when = gettext_lazy("Died")
    empty = gettext_lazy("No job is dead. Jobs come here when their last attempt has failed.")
    actions = (RETRY, MOVE, DELETE)
