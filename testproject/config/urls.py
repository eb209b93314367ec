"""The shop's addresses."""

from __future__ import annotations

from django.conf import settings
from django.conf.urls.static import static
from django.contrib import admin
from django.urls import path

from orders import views

urlpatterns = [
    path("", views.home, name="home"),
    path("order/", views.place_order, name="place-order"),
    path("instance/", views.instance),
    path("admin/", admin.site.urls),
    *static(settings.MEDIA_URL, document_root=settings.MEDIA_ROOT),
]
