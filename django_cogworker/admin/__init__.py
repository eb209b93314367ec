"""Floor 8: pages in the Django admin, where people watch their jobs and repair them.

Django's admin imports this module by itself, as it does with every app's `admin`; that puts the pages on the
default site, unless `COGWORKER_ADMIN` is false. For another site, or for more:

from django_cogworker.admin import Column, Page, register, register_column, register_page

register(ops_site)

A `Page` (page.py) says what it shows and which `Action`s it offers; a `PageAdmin` (page_admin.py) gives it its
place in the admin. Nothing here speaks to Redis: pages ask `django_cogworker.api`.
"""

from __future__ import annotations

from django.apps import apps

from django_cogworker.admin.actions import Action, Outcome
from django_cogworker.admin.columns import Column, register_column
from django_cogworker.admin.page import Page
from django_cogworker.admin.registration import register, register_page
from django_cogworker.conf import get_config
from django_cogworker.exceptions import ConfigurationError

__all__ = [
    "Action",
    "Column",
    "Outcome",
    "Page",
    "register",
    "register_column",
    "register_page",
]


def _is_wanted() -> bool:
    try:
        return apps.is_installed("django.contrib.admin") and get_config().admin
    except ConfigurationError:
        return False  # a system check names the setting; nobody can be helped by a page now


if _is_wanted():
    register()
