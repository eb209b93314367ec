from __future__ import annotations

from django.contrib import admin

from catalog.models import Import, Product, Thumbnail


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ("sku", "name", "price", "stock")
    search_fields = ("sku", "name")


@admin.register(Thumbnail)
class ThumbnailAdmin(admin.ModelAdmin):
    list_display = ("product", "size", "width", "height", "file")
    list_select_related = ("product",)


@admin.register(Import)
class ImportAdmin(admin.ModelAdmin):
    list_display = ("file", "state", "rows", "rejected", "finished_at")
