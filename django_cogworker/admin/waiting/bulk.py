"""One action for all jobs that match, on a page that shows how far it is.

It asks first. Then each request does a step and answers with a form that asks for the next: its one field is the state,
signed, so that nobody makes one up. A script sends the form by itself; without, there is a button. Whoever
leaves the page stops it: what is done stays done. One log entry says how far it came, from its first step on; only the
state that it tells of can be continued, so that an older one, sent again or from another tab, takes nothing back.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_cogworker import api
from django_cogworker.admin.actions import way_back
from django_cogworker.admin.audit import in_english, note
from django_cogworker.admin.listing import LIVE
from django_cogworker.admin.waiting.filters import told
from django_cogworker.api.words import in_language
from django_cogworker.display.quantities import count
from django_cogworker.exceptions import InvalidQuery

if TYPE_CHECKING:
    from django_cogworker.admin.waiting.deeds import JobDeed, Wish
    from django_cogworker.admin.waiting.page import JobsPage

SALT = "django_cogworker.admin.waiting.bulk"
#: Seconds that a state is good for.
MAX_AGE = 86_400
#: Seconds of one step.
BUDGET = 0.5
#: A question looks for so many that match, for so many seconds.
COUNTED, COUNTING = 1_000, 0.2
SHOWN = 5


@dataclasses.dataclass(slots=True)
class Run:
    """What is kept from step to step. `entry`: the log entry; `total`: how many lay there when it began."""

    of: str
    deed: str
    back: str
    minutes: int
    to: str
    total: int
    entry: Any
    state: dict[str, Any]


def question(wish: Wish) -> dict[str, Any]:
    """How many it is about, and some of them."""
    shelf, criteria, or_more = wish.shelf, wish.criteria, False
    if criteria:
        found = shelf.search(criteria, limit=COUNTED, budget=COUNTING)
        jobs, number = found.entries, len(found.entries)
        detail = _("All that match: %(filter)s.") % {"filter": told(criteria)}
        or_more = not found.finished
        if or_more:
            text = ngettext(
                "Only one was looked at so far.",
                "Only %(number)s were looked at so far.",
                found.looked_at,
            )
            detail = f"{detail} {text % {'number': count(found.looked_at)}}"
    else:
        page = shelf.page(limit=SHOWN)
        jobs, number = page.entries, page.total
        detail = _("All that are here, whatever they are.")
    return {
        "question": wish.text(wish.deed.asking, number, or_more=or_more),
        "detail": detail,
        "fields": wish.fields,
        "items": (),
        "jobs": jobs[:SHOWN],
        "more_jobs": number - len(jobs[:SHOWN]),
    }


def begin(request: HttpRequest, wish: Wish) -> HttpResponse:
    """Write down that it begins, and do the first step."""
    page, shelf = wish.page, wish.shelf
    bulk = shelf.bulk(wish.action, wish.criteria)
    entry = note(
        request, page, wish.deed, wish.of, message=in_english(lambda: _log(wish.deed, bulk))
    )
    back = way_back(page, request)
    total = shelf.page(limit=1).total
    run = Run(wish.of, wish.deed.name, back, wish.minutes, wish.to, total, entry.pk, {})
    return _step(request, page, wish.deed, run, bulk)


def go_on(request: HttpRequest, page: JobsPage) -> HttpResponse:
    """The next step of a run that has begun."""
    try:
        who, where, kept = signing.loads(request.POST.get("state", ""), salt=SALT, max_age=MAX_AGE)
        if (who, where) != (_who(request), page.name):
            raise InvalidQuery("It is another one's.")
        run = Run(**kept)
        deed = page.job_deed(run.deed)
        bulk = api.BulkAction.resume(page.shelf(run.of), run.state)
    except (signing.BadSignature, InvalidQuery, Http404):
        return _refused(
            request, page, _("This cannot be continued. Look at what is there, and begin anew.")
        )
    if not page.may(request, deed.permission):
        raise PermissionDenied
    return _step(request, page, deed, run, bulk)


def _step(
    request: HttpRequest, page: JobsPage, deed: JobDeed, run: Run, bulk: api.BulkAction
) -> HttpResponse:
    before = in_english(lambda: _log(deed, bulk))
    with _alone():
        found = _entry(request, run)
        if found is not None and found.change_message != before:
            return _overtaken(request, page)
        progress = bulk.step(BUDGET)
        run.state = bulk.state
        after = in_english(lambda: _log(deed, bulk))
        if found is not None and not _write_down(request, run, before, after):
            return _overtaken(request, page)
    kept = (_who(request), page.name, dataclasses.asdict(run))
    context = {
        "page": page,
        "deed": deed,
        "progress": progress,
        "filter": told(bulk.criteria),
        "minutes": run.minutes if deed.wants == "minutes" else None,
        "to": run.to,
        "total": max(run.total, progress.looked_at),
        "refused": [(in_language(reason), number) for reason, number in progress.refused.items()],
        "classes": sorted(progress.classes.items(), key=lambda each: -each[1]),
        "state": "" if progress.finished else signing.dumps(kept, salt=SALT, compress=True),
        "address": page.url("step"),
        "back": run.back,
        "title": deed.label,
        "crumbs": page.crumbs(deed.label),
    }
    if LIVE in request.POST:
        return TemplateResponse(request, "cogworker/includes/bulk.html", context)
    return page.render(request, "cogworker/bulk.html", context)


def _who(request: HttpRequest) -> str:
    user: Any = request.user
    return str(user.pk)


def _refused(request: HttpRequest, page: JobsPage, why: str) -> HttpResponse:
    messages.error(request, why)
    return HttpResponseRedirect(page.url())


def _overtaken(request: HttpRequest, page: JobsPage) -> HttpResponse:
    return _refused(
        request,
        page,
        _(
            "This has gone on without this page, perhaps in another tab. Look at what is there, and begin anew for "
            "what is left."
        ),
    )


def _entries() -> Any:
    from django.contrib.admin.models import LogEntry

    return LogEntry.objects.using(router.db_for_write(LogEntry))


def _can_lock() -> bool:
    return bool(connections[_entries().db].features.has_select_for_update)


def _alone() -> contextlib.AbstractContextManager[Any]:
    """Steps of one run wait for each other, where the database can lock a row."""
    return transaction.atomic(_entries().db) if _can_lock() else contextlib.nullcontext()


def _entry(request: HttpRequest, run: Run) -> Any:
    """The log entry; `None` where somebody has deleted it."""
    user: Any = request.user
    found = _entries().filter(pk=run.entry, user_id=user.pk)
    return (found.select_for_update() if _can_lock() else found).first()


def _write_down(request: HttpRequest, run: Run, before: str, message: str) -> bool:
    """False where another step of the same run was quicker: then the entry tells of that one."""
    user: Any = request.user
    found = _entries().filter(pk=run.entry, user_id=user.pk)
    if not _can_lock():
        found = found.filter(change_message=before)
    return bool(found.update(change_message=message)) or _entry(request, run) is None


def _log(deed: JobDeed, bulk: api.BulkAction) -> str:
    """What the log entry says: what for, and its numbers."""
    progress = bulk.progress
    words = {
        "action": deed.label,
        "filter": told(bulk.criteria) or _("everything"),
        "done": count(progress.done),
        "gone": count(progress.gone),
        "newer": count(progress.newer),
        "refused": count(sum(progress.refused.values())),
    }
    text = _(
        "%(action)s, all that match (%(filter)s): %(done)s done, %(gone)s gone, %(newer)s newer, "
        "%(refused)s refused."
    )
    return text % words if progress.finished else f"{text % words} {_('Not finished.')}"
