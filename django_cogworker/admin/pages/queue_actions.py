"""What can be done with queues: on their own page, and on the overview."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext_lazy, ngettext

from django_cogworker import api
from django_cogworker.admin import permissions
from django_cogworker.admin.actions import Action, Items, Outcome, Text
from django_cogworker.display.quantities import count
from django_cogworker.exceptions import InvalidQueueName


def _queues(items: Items) -> list[api.Queue]:
    found = []
    for each in items:
        try:
            found.append(api.Queue(each))
        except InvalidQueueName:
            continue
    return found


def _each(
    verb: Callable[[api.Queue], object], done: Text, nothing: Text
) -> Callable[[Items], Outcome]:
    def carry_out(items: Items) -> Outcome:
        changed = [each.name for each in _queues(items) if verb(each)]
        return Outcome(
            (done if changed else nothing) % {"items": ", ".join(changed or items)}, changed
        )

    return carry_out


def _ask_clear(items: Items) -> str:
    queues = _queues(items)
    waiting = sum(each.size for each in queues)
    return ngettext(
        "Delete the job that waits on %(queues)s?",
        "Delete all %(number)s jobs that wait on %(queues)s?",
        waiting,
    ) % {"number": count(waiting), "queues": ", ".join(each.name for each in queues)}


def _clear(items: Items) -> Outcome:
    queues = _queues(items)
    deleted = sum(each.clear() for each in queues)
    text = ngettext("%(number)s job was deleted.", "%(number)s jobs were deleted.", deleted)
    return Outcome(
        text % {"number": count(deleted)}, [each.name for each in queues] if deleted else []
    )


PAUSE = Action(
    name="pause",
    label=gettext_lazy("Pause"),
    about=gettext_lazy("Pause the queue %(item)s"),
    done=gettext_lazy("Paused."),
    permission=permissions.PAUSE_QUEUES,
    carry_out=_each(
        api.Queue.pause,
        gettext_lazy("Paused: %(items)s. Jobs that run already go on."),
        gettext_lazy("Nothing to do: %(items)s is paused already."),
    ),
)
RESUME = Action(
    name="resume",
    label=gettext_lazy("Resume"),
    about=gettext_lazy("Resume the queue %(item)s"),
    done=gettext_lazy("Resumed."),
    permission=permissions.PAUSE_QUEUES,
    carry_out=_each(
        api.Queue.resume,
        gettext_lazy("Resumed: %(items)s."),
        gettext_lazy("Nothing to do: %(items)s is not paused."),
    ),
)
CLEAR = Action(
    name="clear",
    label=gettext_lazy("Delete all jobs"),
    about=gettext_lazy("Delete all jobs of the queue %(item)s"),
    done=gettext_lazy("All waiting jobs deleted."),
    permission=permissions.CLEAR_QUEUES,
    carry_out=_clear,
    question=_ask_clear,
    destroys=True,
)
