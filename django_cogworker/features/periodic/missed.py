"""What becomes of the slots since the last one: which become jobs, and what the ledger says of those left out.

A slot is on time, or it was missed: then `catch_up` decides. Slots that are left out are told one by one
while they are few, else in one line that says how many, from when to when. They are counted up to a
bound, so that nobody walks through a year of seconds.
"""

from __future__ import annotations

import dataclasses
from itertools import islice, takewhile
from typing import Any

from django.utils.translation import gettext_noop

from django_cogworker.features.periodic.entry import Entry

#: So many slots left out have a line each.
FEW = 5
#: So many are counted.
COUNTED = 1000

#: Written in English; the pages translate them.
REASONS = {
    "skip": gettext_noop("missed, and catch_up is 'skip'"),
    "once": gettext_noop("missed, and catch_up is 'once': a later one counts"),
    "all": gettext_noop("missed, and beyond the limit of catch_up 'all'"),
}
DISABLED = gettext_noop("the entry was disabled")
BLOCKED = gettext_noop("the run before it had not ended")
UNUSABLE = gettext_noop("what was known of earlier slots was unusable, so the entry begins anew")


@dataclasses.dataclass(frozen=True)
class Plan:
    """`wanted`: the slots that become jobs, the earliest first. `left_out`: lines for the ledger about
    those before them.
    """

    wanted: tuple[int, ...]
    left_out: tuple[dict[str, Any], ...] = ()


def plan(entry: Entry, last: int, since: float, now: float, most: int) -> Plan:
    """For the slots after `last` and up to now. Those after `since` are on time, the newest `most` of
    them.
    """
    on_time = entry.cron.newest(now, max(last, since), limit=most)
    end = on_time[0] - 1 if on_time else now
    keep = {"skip": 0, "once": 0 if on_time else 1, "all": entry.limit}[entry.catch_up]
    missed = entry.cron.newest(end, last, limit=keep) if keep and end > last else []
    if missed:
        end = missed[0] - 1
    lines = left_out(entry, last, end, now, REASONS[entry.catch_up])
    return Plan((*missed, *on_time), lines)


def left_out(
    entry: Entry, after: int, until: float, now: float, reason: str
) -> tuple[dict[str, Any], ...]:
    """Lines for the slots after the one moment and up to the other."""
    if until <= after:
        return ()
    walk = takewhile(lambda slot: slot <= until, entry.cron.slots(after))
    found = list(islice(walk, COUNTED + 1))
    if len(found) <= FEW:
        return tuple(skipped(slot, now, reason) for slot in found)
    (newest,) = entry.cron.newest(until, after)
    line = skipped(newest, now, reason)
    line |= {"first": found[0], "count": min(len(found), COUNTED)}
    if len(found) > COUNTED:
        line["or_more"] = True
    return (line,)


def skipped(slot: int, now: float, reason: str) -> dict[str, Any]:
    """A line for the ledger about one slot."""
    return {"slot": slot, "at": round(now, 3), "skipped": reason}
