"""A page: what it shows, which things on it have a page of their own, and what can be done.

A request for it is answered in full, or, where the query has `_live`, with the part alone that changes: that is
what the script asks for again and again. What does not need Redis is left out of it then. Each page of ours is
a class in `pages/`; apps add theirs with `register_page`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import django
import redis
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.http import urlencode

from django_cogworker.admin import columns, permissions
from django_cogworker.admin.actions import Deed, act, find
from django_cogworker.admin.addresses import in_address, out_of_address
from django_cogworker.admin.away import away
from django_cogworker.admin.listing import LIVE, query
from django_cogworker.exceptions import EmbeddedServerError
from django_cogworker.store.lenient import lenient

logger = logging.getLogger("django_cogworker")

#: What is refreshed: the page's own template, and above it which keys could not be read.
LIVE_TEMPLATE = "cogworker/live.html"

Text = str | Promise
Context = dict[str, Any]
#: Route, view, name, and the decorator that says by which method it is asked.
Further = tuple[str, Callable[[HttpRequest], HttpResponse], str, Callable[[Any], Any]]


class Page:
    """Derive from it, and say `name`, `title`, `template` and `context`."""

    #: In addresses, and for `register_column`.
    name: ClassVar[str]
    title: ClassVar[Text]
    #: What the navigation of the pages says; the title where empty.
    short: ClassVar[Text] = ""
    #: Of the refreshed part. `cogworker/page.html` puts the frame around it.
    template: ClassVar[str]
    #: Of what stands above it and is not refreshed, such as a form with filters.
    above: ClassVar[str] = ""
    #: The same for one thing; without it things have no page of their own.
    item_template: ClassVar[str] = ""
    #: Seconds between refreshes; 0: none.
    interval: ClassVar[float] = 5
    actions: ClassVar[Sequence[Deed]] = ()
    #: Opens the page; a name with a dot is another app's.
    permission: ClassVar[str] = permissions.VIEW
    #: Our own pages have a model each. One without lies below the overview.
    model: ClassVar[type[Model] | None] = None
    #: A name in `django_cogworker.api` that has to be there: the page's feature may not be.
    needs: ClassVar[str] = ""

    def __init__(self, site: Any) -> None:
        """`site`: the `AdminSite` that it is on."""
        self.site = site

    # What a page says.

    def context(self, request: HttpRequest) -> Context:
        """What the templates get. Called again for each refresh. With `refreshes` false it is not kept up to date."""
        return {}

    def item_context(self, request: HttpRequest, item: str) -> Context:
        """The same for one thing. Raises `Http404` for what cannot exist; where `known` is false the page that says so
        has status 404, too.
        """
        raise Http404

    def refreshes(self, request: HttpRequest) -> bool:
        """Whether this view of the page is kept up to date."""
        return self.interval > 0

    def further(self) -> Sequence[Further]:
        """Addresses beside the list, the things and the actions."""
        return ()

    # What it gets from the frame.

    @property
    def log_model(self) -> type[Model]:
        """Whose content type its log entries have."""
        from django_cogworker.models import Overview

        return self.model or Overview

    def may(self, request: HttpRequest, permission: str) -> bool:
        return permissions.has(request, permission)

    def may_view(self, request: HttpRequest) -> bool:
        return self.may(request, self.permission)

    def action(self, name: Any) -> Deed:
        """Raises `Http404`."""
        return find(self.actions, name)

    def rows(self, items: Any) -> list[columns.Row]:
        """Rows for the main table, with the cells that apps added."""
        return columns.rows(self.name, items)

    def url(self, view: str = "changelist", *args: str) -> str:
        """The address of one of its views: `changelist`, `change` (of one thing, quoted), `act`."""
        name = f"admin:{permissions.APP}_{self.name}_{view}"
        return str(reverse(name, args=args, current_app=self.site.name))

    def url_of(self, name: str, item: str = "", **asked: Any) -> str:
        """The address of any page by name, or of a thing on it; empty where there is none."""
        view, args = ("change", [in_address(item)]) if item else ("changelist", [])
        try:
            url = reverse(
                f"admin:{permissions.APP}_{name}_{view}", args=args, current_app=self.site.name
            )
        except NoReverseMatch:
            return ""
        return f"{url}?{urlencode(asked)}" if asked else str(url)

    def crumbs(self, *further: Text) -> list[tuple[Text, str]]:
        """The way here: titles and addresses."""
        if not further:
            return [(self.title, "")]
        return [(self.title, self.url()), *((each, "") for each in further)]

    # Answering.

    def answer(self, request: HttpRequest) -> HttpResponse:
        return self._show(request, self.template, self.title, self.crumbs(), self.context(request))

    def answer_item(self, request: HttpRequest, quoted: str) -> HttpResponse:
        item = out_of_address(quoted)
        context = {"item": item, **self.item_context(request, item)}
        answer = self._show(request, self.item_template, item, self.crumbs(item), context)
        if not context.get("known", True) and LIVE not in request.GET:
            answer.status_code = 404
        return answer

    def answer_act(self, request: HttpRequest) -> HttpResponse:
        return act(self, request)

    def safely(self, view: Any, request: HttpRequest, *args: str) -> HttpResponse:
        """Answer by `view`; who may not look gets 403, and where Redis is away a page says so."""
        if not self.may_view(request):
            raise PermissionDenied
        request.current_app = self.site.name
        try:
            if request.method == "POST":  # what changes something has to know what is there
                response: HttpResponse = view(request, *args)
            else:
                with lenient() as odd:
                    response = view(request, *args)
                if odd and isinstance(response, TemplateResponse):
                    response.context_data = {**(response.context_data or {}), "odd_keys": list(odd)}
        except (redis.RedisError, EmbeddedServerError) as error:
            logger.warning("The page %s cannot be shown: %s", request.path, error)
            response = away(self, request, error)
        return response

    def _show(
        self, request: HttpRequest, template: str, title: Text, crumbs: Any, context: Context
    ) -> HttpResponse:
        context = {"page": self, "columns": columns.columns_of(self.name), **context}
        context["back"] = request.path + query(request).removesuffix("?")
        if LIVE in request.GET:
            return TemplateResponse(request, LIVE_TEMPLATE, {**context, "live_template": template})
        context["above"] = self.above if template == self.template else ""
        if self.refreshes(request) and context.get("refreshes", True):
            context["poll"] = query(request, **{LIVE: "1"})
        context |= {"title": title, "crumbs": crumbs, "live_template": template}
        return self.render(request, "cogworker/page.html", context)

    def render(
        self, request: HttpRequest, template: str, context: Context, status: int = 200
    ) -> HttpResponse:
        """A whole page of the admin."""
        frame = {
            **self.site.each_context(request),
            "opts": self.log_model._meta,
            "page": self,
            "crumbs": self.crumbs(),
            "crumbs_are_list": django.VERSION >= (6, 1),
            "tabs": self._tabs(request),
        }
        return TemplateResponse(request, template, {**frame, **context}, status=status)

    def _tabs(self, request: HttpRequest) -> list[tuple[Text, str, bool]]:
        """All pages that whoever asks may see: name, address, whether it is this one."""
        from django_cogworker.admin.registration import pages_on

        return [
            (each.short or each.title, each.url(), each.name == self.name)
            for each in pages_on(self.site)
            if each.may_view(request)
        ]
