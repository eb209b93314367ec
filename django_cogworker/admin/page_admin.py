"""Gives a page its place in the admin: an entry in the index and the sidebar, addresses, permissions.

It is a `ModelAdmin` of a model without a table, all of whose addresses are replaced by the page's own: there is
nothing to add, to change or to delete.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, reverse_lazy
from django.views.decorators.http import require_POST, require_safe

from django_cogworker.admin.page import Page
from django_cogworker.admin.permissions import APP, MANAGE, has
from django_cogworker.admin.registration import added_pages

if TYPE_CHECKING:
    from django.db.models import Model

    Base = admin.ModelAdmin[Model]
else:
    Base = admin.ModelAdmin


class PageAdmin(Base):
    """The place of one page. `registration` makes a subclass for each."""

    page_class: ClassVar[type[Page]]

    def __init__(self, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.page = self.page_class(admin_site)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return has(request, MANAGE)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.page.may_view(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_urls(self) -> list[Any]:
        found = urls_of(self.page)
        if self.page.name == "overview":
            found += [
                path(f"more/{each.name}/", include(urls_of(each)))
                for each in added_pages(self.admin_site)
            ]
        return found


def urls_of(page: Page) -> list[Any]:
    """The addresses of a page, below the place that it has."""

    def named(route: str, view: Any, name: str, method: Any) -> Any:
        return path(route, _wrapped(page, view, method), name=f"{APP}_{page.name}_{name}")

    found: list[Any] = [
        named("", page.answer, "changelist", require_safe),
        named("act/", page.answer_act, "act", require_POST),
        *(named(*each) for each in page.further()),
    ]
    if page.item_template:
        found.append(named("<path:quoted>/change/", _by_item(page), "change", require_safe))
    return found


def _by_item(page: Page) -> Callable[[HttpRequest, str], HttpResponse]:
    def answer(request: HttpRequest, quoted: str) -> HttpResponse:
        return page.answer_item(request, quoted)

    return answer


def _wrapped(page: Page, view: Any, method: Any) -> Any:
    """Behind the login and the token check of the admin."""
    inner = partial(page.safely, view)
    wrapped = page.site.admin_view(method(_as_view(inner)))

    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return wrapped(request, *args, **kwargs)

    # Django's own middleware that asks for a login reads this.
    answer.login_url = reverse_lazy("admin:login", current_app=page.site.name)  # type: ignore[attr-defined]
    return update_wrapper(answer, wrapped)


def _as_view(inner: Any) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest, **kwargs: str) -> HttpResponse:
        answer: HttpResponse = inner(request, *kwargs.values())
        return answer

    return view
