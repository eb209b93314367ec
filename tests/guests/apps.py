"""The app of the guests' models."""

from __future__ import annotations

from django.apps import AppConfig


class GuestsConfig(AppConfig):
    name = "tests.guests"
    # Django 5.2 warns of models without it, in plain text before the first line of the log.
    default_auto_field = "django.db.models.BigAutoField"
