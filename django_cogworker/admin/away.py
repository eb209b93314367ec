"""The answer where Redis does not answer: a page that says so, with status 503, and no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from django_cogworker.admin.listing import LIVE
from django_cogworker.conf import get_config
from django_cogworker.store.target import resolve

if TYPE_CHECKING:
    from django_cogworker.admin.page import Page


def away(page: Page, request: HttpRequest, error: Exception) -> HttpResponse:
    """What to say about it: that it is away, or that it answers with an error."""
    answers = isinstance(error, redis.ResponseError)
    context = {
        "title": _("Redis answers with an error") if answers else _("Redis is away"),
        "answers": answers,
        "error": str(error),
        "where": resolve(get_config()).description,
        "acted": request.method == "POST",
        "retry": request.get_full_path() if request.method == "GET" else page.url(),
    }
    if LIVE in request.GET:
        return TemplateResponse(request, "cogworker/includes/away.html", context, status=503)
    return page.render(request, "cogworker/away.html", context, status=503)
