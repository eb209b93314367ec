from __future__ import annotations

from django.contrib import admin

from partners.models import BuriedJob, PartnerCall


@admin.register(PartnerCall)
class PartnerCallAdmin(admin.ModelAdmin):
    list_display = ("partner", "order", "attempt", "ok", "answer", "called_at")
    list_filter = ("ok",)


@admin.register(BuriedJob)
class BuriedJobAdmin(admin.ModelAdmin):
    list_display = ("job_class", "error", "jid", "buried_at")
