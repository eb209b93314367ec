"""`{% load cogworker %}`: what the pages' templates say often. For templates of extensions too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.template import RequestContext
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_cogworker.api import words
from django_cogworker.api.records import JobRecord
from django_cogworker.display import quantities, times
from django_cogworker.display.arguments import arguments_shown, cut
from django_cogworker.display.tracebacks import folded

register = template.Library()

#: Longer arguments are cut in tables (characters).
MAX_ARGS = 200

register.filter("cog_duration", quantities.duration)
register.filter("cog_size", quantities.size)
register.filter("cog_count", quantities.count)
register.filter("cog_time", times.time_tag)
register.filter("cog_word", words.word)
register.filter("cog_in_language", words.in_language)


@register.simple_tag(takes_context=True)
def cog_nonce(context: RequestContext) -> SafeString | str:
    """The attribute that a strict policy wants on scripts and style sheets, where the project has one."""
    nonce = context.get("csp_nonce")
    return "" if nonce is None else format_html('nonce="{}"', nonce)


@register.inclusion_tag("cogworker/includes/chart.html")
def cog_chart(chart: Any) -> dict[str, Any]:
    return {"chart": chart}


@register.inclusion_tag("cogworker/includes/traceback.html")
def cog_trace(text: str | None, message: str | None = "", job: Any = None) -> dict[str, Any]:
    """A traceback or a stack, folded, below a message where there is one; `job`: whose masked values are not in it."""
    masked = job.masked if isinstance(job, JobRecord) else str
    return {"message": masked(message or ""), "trace": folded(masked(text or ""))}


@register.inclusion_tag("cogworker/includes/pager.html")
def cog_pager(pager: Any) -> dict[str, Any]:
    return {"pager": pager}


@register.inclusion_tag("cogworker/includes/action.html", takes_context=True)
def cog_action(
    context: RequestContext, name: str, item: str = "", label: str = ""
) -> dict[str, Any]:
    """A button that does something, of a page that offers it; nothing for whoever may not. A `label` says enough
    for screen readers, too.
    """
    page, request = context["page"], context.request
    action = page.action(name)
    return {
        "action": action if page.may(request, action.permission) else None,
        "label": label or action.label,
        "about": label or action.about_item(item),
        "item": item,
        "url": page.url("act"),
        "back": context["back"],
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("cogworker/includes/job_action.html", takes_context=True)
def cog_job_action(context: RequestContext, name: str) -> dict[str, Any]:
    """The same for the job of the page, with the fields that the action needs."""
    seen = context["seen"]
    return {
        **cog_action(context, name, context["jid"]),
        "seen": "" if seen is None else seen.seen,
        "minutes": context["minutes"],
        "most_minutes": context["most_minutes"],
        "in_minutes": _("in minutes"),
        "to_queue": _("to queue"),
    }


@register.simple_tag(takes_context=True)
def cog_url(context: RequestContext, name: str, item: str = "", **query: Any) -> str:
    """The address of a page by its name, or of one thing on it, or empty where there is no such page.

    `{% cog_url "queue" "mail" as url %}`, `{% cog_url "history" status="failed" %}`.
    """
    return str(context["page"].url_of(name, item, **query))


@register.filter
def cog_moment(job: Any) -> float | None:
    """When a job in a set is due or died; when one on a queue came there."""
    at: float | None = job.enqueued_at or job.created_at if job.place == "queue" else job.at
    return at


@register.filter
def cog_fitting(deeds: Iterable[Any], job: Any) -> list[Any]:
    """Of what can be done with jobs what can be done with this one."""
    return [each for each in deeds if each.fits(job)]


@register.filter
def cog_any_wants(deeds: Iterable[Any], what: str) -> bool:
    """Whether any of them wants that."""
    return any(each.wants == what for each in deeds)


@register.filter
def cog_any_rare(deeds: Iterable[Any]) -> bool:
    """Whether any of them is out of the way."""
    return any(each.is_rare for each in deeds)


@register.filter
def cog_about(deed: Any, item: str) -> str:
    """What a screen reader says of doing it with that."""
    return str(deed.about_item(item))


@register.filter
def cog_since(moment: Any, now: float) -> float | None:
    """Seconds from a moment until `now`, never below 0."""
    return max(0.0, now - moment) if isinstance(moment, (int, float)) else None


@register.filter
def cog_queues(info: dict[str, Any]) -> list[tuple[str, int]]:
    """The queues that a worker reads, with their weights."""
    counts = Counter(map(str, [*info.get("queues", ()), *info.get("async_queues", ())]))
    return list(counts.items())


@register.filter
def cog_slots(process: Any) -> int:
    """How many jobs a worker runs at the same time at the most."""
    info = process.info
    return int(info.get("concurrency") or 0) + int(info.get("async_concurrency") or 0)


@register.filter
def cog_busy(process: Any, held: Mapping[str, int]) -> int:
    """How many jobs a worker runs: of those that it holds at most as many as it has slots for, since a few are
    fetched ahead; where that is not known, as many as its last beat said.
    """
    count = held.get(process.identity)
    return int(process.busy) if count is None else min(count, cog_slots(process))


@register.filter
def cog_versions(info: dict[str, Any]) -> str:
    """What a worker runs with, as far as it tells: ours, Python (and whether that has its lock), Django, redis-py."""
    lock = "" if info.get("gil", True) else f" ({_('without the GIL')})"
    told = (
        (info.get("version"), "", ""),
        (info.get("python"), "Python ", lock),
        (info.get("django"), "Django ", ""),
        (info.get("redis_py"), "redis-py ", ""),
    )
    return " · ".join(f"{name}{version}{more}" for version, name, more in told if version)


@register.filter
def cog_memory(info: dict[str, Any]) -> int | None:
    """A worker's resident memory in bytes, where it tells."""
    kilobytes = info.get("rss_kb")
    return kilobytes * 1024 if isinstance(kilobytes, int) else None


@register.filter
def cog_args(job: Any) -> str:
    """The arguments of a job or a run on one line, as far as they fit into a table."""
    return cut(arguments_shown(job), MAX_ARGS)
