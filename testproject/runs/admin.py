from __future__ import annotations

from django.contrib import admin

from runs.models import DemoBatch, JobRun


@admin.register(JobRun)
class JobRunAdmin(admin.ModelAdmin):
    list_display = (
        "job_class",
        "state",
        "queue",
        "runs",
        "failures",
        "retries",
        "seconds",
        "error",
        "enqueued_at",
    )
    list_filter = ("state", "job_class", "queue")
    search_fields = ("jid", "error")


admin.site.register(DemoBatch)
