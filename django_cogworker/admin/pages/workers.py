"""Workers: who lives, how much each has to do, what it runs; who was lost, and which jobs were stuck."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from django_cogworker import api
from django_cogworker.admin import permissions
from django_cogworker.admin.actions import Action, Items, Outcome, Text
from django_cogworker.admin.listing import cut
from django_cogworker.admin.page import Context, Page
from django_cogworker.models import Worker
from django_cogworker.templatetags.cogworker import cog_slots

#: Stands for all workers that live.
ALL = "*"
#: So many lost workers, stuck jobs and running jobs are shown.
MOST = 20
MOST_RUNNING = 100


def _signalled(verb: str, done: Text) -> Callable[[Items], Outcome]:
    def carry_out(items: Items) -> Outcome:
        processes = [each for each in api.ProcessSet() if ALL in items or each.identity in items]
        changed = [each.identity for each in processes if getattr(each, verb)()]
        if not changed:
            return Outcome(_("No such worker lives any more."))
        return Outcome(done % {"items": ", ".join(changed)}, changed)

    return carry_out


def _ask_stop(items: Items) -> str:
    if ALL in items:
        return _("Stop all workers? Nothing runs any more until others are started.")
    return _(
        "Stop %(items)s? Running jobs get time to end; those that do not go back to their queues."
    ) % {"items": ", ".join(items)}


def _ask_stacks(items: Items) -> Outcome:
    asked = [each for each in items if api.ask_stacks(each)]
    if not asked:
        return Outcome(_("No such worker lives any more."))
    return Outcome(
        _("Asked where its jobs are; it answers with its next beat: %(items)s.")
        % {"items": ", ".join(asked)},
        asked,
    )


class WorkersPage(Page):
    """The workers that live. Rows of the table are `Process`."""

    name = "worker"
    title = gettext_lazy("Workers")
    template = "cogworker/workers.html"
    item_template = "cogworker/worker.html"
    model = Worker
    actions = (
        Action(
            name="quiet",
            label=gettext_lazy("Quiet"),
            about=gettext_lazy("Quiet %(item)s"),
            done=gettext_lazy("Quieted."),
            permission=permissions.STEER_WORKERS,
            carry_out=_signalled(
                "quiet", gettext_lazy("Asked to fetch no more jobs, with the next beat: %(items)s.")
            ),
        ),
        Action(
            name="resume",
            label=gettext_lazy("Resume"),
            about=gettext_lazy("Resume %(item)s"),
            done=gettext_lazy("Resumed."),
            permission=permissions.STEER_WORKERS,
            carry_out=_signalled(
                "resume", gettext_lazy("Asked to work again, with the next beat: %(items)s.")
            ),
        ),
        Action(
            name="stop",
            label=gettext_lazy("Stop"),
            about=gettext_lazy("Stop %(item)s"),
            done=gettext_lazy("Stopped."),
            permission=permissions.STEER_WORKERS,
            carry_out=_signalled(
                "stop", gettext_lazy("Asked to stop, with the next beat: %(items)s.")
            ),
            question=_ask_stop,
            destroys=True,
        ),
        Action(
            name="stacks",
            label=gettext_lazy("Show stacks"),
            about=gettext_lazy("Show stacks of the jobs that run in %(item)s"),
            done=gettext_lazy("Stacks asked for."),
            permission=permissions.STEER_WORKERS,
            carry_out=_ask_stacks,
        ),
    )

    def context(self, request: HttpRequest) -> Context:
        processes = list(api.ProcessSet())
        shown, pager = cut(request, processes)
        held = api.WorkSet().held(MOST_RUNNING)
        return {
            "processes": processes,
            "working": sum(not each.is_quiet for each in processes),
            "busy": sum(each.busy for each in processes),
            "slots": sum(map(cog_slots, processes)),
            "rows": self.rows(shown),
            "pager": pager,
            "now": time.time(),
            "running": held.entries,
            "more_running": max(0, held.total - MOST_RUNNING),
            "held": held.sizes,
            "losses": api.losses()[:MOST],
            "stuck": _stuck(),
            "all": ALL,
        }

    def item_context(self, request: HttpRequest, item: str) -> Context:
        process = next((each for each in api.ProcessSet() if each.identity == item), None)
        held = api.WorkSet(item).held(MOST_RUNNING)
        return {
            "process": process,
            "facts": _facts(process) if process else (),
            "now": time.time(),
            "running": held.entries,
            "more_running": max(0, held.total - MOST_RUNNING),
            "held": held.sizes,
            "stacks": api.worker_stacks(item) if hasattr(api, "worker_stacks") else None,
        }


def _stuck() -> list[dict[str, Any]]:
    return api.stuck_jobs(MOST) if hasattr(api, "stuck_jobs") else []


def _facts(process: api.Process) -> Sequence[tuple[Any, Any]]:
    """What else a worker says of itself, as labels and texts."""
    info = process.info
    gil = info.get("gil")
    return (
        (_("Host"), info.get("hostname")),
        (_("Process id"), info.get("pid")),
        (_("Supervisor"), info.get("supervisor")),
        (_("Version"), info.get("version")),
        ("Python", info.get("python")),
        (
            _("Global interpreter lock"),
            None
            if gil is None
            else pgettext("interpreter lock", "on")
            if gil
            else pgettext("interpreter lock", "off"),
        ),
        ("Django", info.get("django")),
        ("redis-py", info.get("redis_py")),
    )
