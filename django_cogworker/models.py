"""Models without tables: each stands for a page of the admin, so that the page has a place in the admin's
index, a content type for its log entries, and permissions. Nothing is ever read from them.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Page(models.Model):
    """What all of them are."""

    class Meta:
        abstract = True
        managed = False
        default_permissions = ()


class Overview(Page):
    """Has the permissions of all pages. `manage_jobs` includes each of those below it. Their names are kept in the
    database in English, as Django does with its own; they are marked for projects that translate them at reading.
    """

    class Meta(Page.Meta):
        verbose_name = _("overview")
        verbose_name_plural = _("Overview")
        permissions = (
            ("view_jobs", _("Can look at background jobs")),
            ("manage_jobs", _("Can do everything with background jobs")),
            ("pause_queues", _("Can pause and resume queues")),
            ("clear_queues", _("Can delete all jobs of a queue")),
            ("steer_periodic", _("Can run, disable and enable periodic entries")),
            ("steer_workers", _("Can quiet, resume and stop workers")),
            ("retry_jobs", _("Can retry jobs and run them now")),
            ("move_jobs", _("Can reschedule jobs and move them to another queue")),
            ("delete_jobs", _("Can delete and cancel jobs")),
        )


class Job(Page):
    class Meta(Page.Meta):
        verbose_name = _("job")
        verbose_name_plural = _("Jobs")


class Queue(Page):
    class Meta(Page.Meta):
        verbose_name = _("queue")
        verbose_name_plural = _("Queues")


class Scheduled(Page):
    class Meta(Page.Meta):
        verbose_name = _("scheduled job")
        verbose_name_plural = _("Scheduled")


class Retry(Page):
    class Meta(Page.Meta):
        verbose_name = _("retrying job")
        verbose_name_plural = _("Retries")


class Dead(Page):
    class Meta(Page.Meta):
        verbose_name = _("dead job")
        verbose_name_plural = _("Dead")


class Periodic(Page):
    class Meta(Page.Meta):
        verbose_name = _("periodic entry")
        verbose_name_plural = _("Periodic")


class Worker(Page):
    class Meta(Page.Meta):
        verbose_name = _("worker")
        verbose_name_plural = _("Workers")


class History(Page):
    class Meta(Page.Meta):
        verbose_name = _("run")
        verbose_name_plural = _("History")


class Error(Page):
    class Meta(Page.Meta):
        verbose_name = _("group of errors")
        verbose_name_plural = _("Errors")


class JobClass(Page):
    class Meta(Page.Meta):
        verbose_name = _("job class")
        verbose_name_plural = _("Job classes")
