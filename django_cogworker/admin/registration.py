"""Which pages there are, and on which sites.

Ours are listed here and put on a site by `register`. Those of apps come by `register_page`, at the latest when
the address list of the project is read; they lie below the overview and are on every site that has it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from django.utils.module_loading import import_string

from django_cogworker import api
from django_cogworker.admin.page import Page
from django_cogworker.exceptions import ConfigurationError

#: One line a page, in the order of the navigation.
PAGES = [
    "django_cogworker.admin.pages.overview.OverviewPage",
    "django_cogworker.admin.pages.jobs.AllJobsPage",
    "django_cogworker.admin.pages.queues.QueuesPage",
    "django_cogworker.admin.pages.sets.ScheduledPage",
    "django_cogworker.admin.pages.sets.RetriesPage",
    "django_cogworker.admin.pages.sets.DeadPage",
    "django_cogworker.admin.pages.periodic.PeriodicPage",
    "django_cogworker.admin.pages.workers.WorkersPage",
    "django_cogworker.admin.pages.history.HistoryPage",
    "django_cogworker.admin.pages.errors.ErrorsPage",
    "django_cogworker.admin.pages.classes.JobClassesPage",
]

_added: list[type[Page]] = []
_on: WeakKeyDictionary[Any, list[Page]] = WeakKeyDictionary()


def register(site: Any = None) -> None:
    """Put the pages on an `AdminSite`, by default on `django.contrib.admin.site`. Once is enough; a second time
    does nothing.
    """
    from django.contrib import admin

    from django_cogworker.admin.page_admin import PageAdmin

    site = site or admin.site
    if site in _on:
        return
    found: list[Page] = []
    for path in PAGES:
        page = import_string(path)
        if page.needs and not hasattr(api, page.needs):
            continue
        site.register(page.model, type(f"{page.__name__}Admin", (PageAdmin,), {"page_class": page}))
        found.append(site.get_model_admin(page.model).page)
    # The site itself: the default one is a proxy that stands for it.
    _on[found[0].site] = found


def register_page(page: type[Page]) -> type[Page]:
    """Add a page of an app's own; also as a decorator. Call it in the app's `admin.py`. Raises
    `ConfigurationError` where the name is taken.
    """
    taken = [*(import_string(each) for each in PAGES), *_added]
    if any(each.name == page.name for each in taken):
        raise ConfigurationError(f"There is a page named {page.name!r} already.")
    _added.append(page)
    return page


def withdraw_page(page: type[Page]) -> None:
    """Take it out again (tests)."""
    _added.remove(page)


def added_pages(site: Any) -> list[Page]:
    """Those of apps, on this site."""
    return [each(site) for each in _added]


def pages_on(site: Any) -> list[Page]:
    """All pages of a site, in the order of the navigation."""
    return [*_on.get(site, ()), *added_pages(site)]
