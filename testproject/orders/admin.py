from __future__ import annotations

from django.contrib import admin

from orders.models import Digest, Order


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("pk", "email", "product", "pieces", "total", "state", "receipt_sent_at")
    list_filter = ("state",)
    list_select_related = ("product",)


@admin.register(Digest)
class DigestAdmin(admin.ModelAdmin):
    list_display = ("day", "orders", "turnover", "made_at")
