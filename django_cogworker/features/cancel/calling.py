"""What `cancel()` does.

1. The wish is written down for the workers: from now on none of them starts the job.
2. Where the job waits, it is looked for: where a feature knows its place there, else everywhere, for a
   limited time. What is found is taken away at once, with all that features want done at its end.
3. What is not found in time is dropped by the worker that reaches it; what runs is asked.
"""

from __future__ import annotations

from typing import Any, Literal

from django_cogworker.client.transport import CollectingTransport, current_transport, real_transport
from django_cogworker.features.asking import Effects, locate
from django_cogworker.features.base import Place, Run
from django_cogworker.features.cancel import asked
from django_cogworker.store.scripted import text
from django_cogworker.store.search import Search, Spotted
from django_cogworker.store.store import get_store

#: Seconds that are spent on looking for a job whose place is not known.
BUDGET = 1.0

#: `removed`: it waited, and is gone. `asked`: the worker that runs it, or comes to it, has been told.
#: `ended`: it was over before.
Answer = Literal["removed", "asked", "ended"]

_WAITING = ("queued", "scheduled", "retrying")


def cancel(jid: str, *, force: bool = False, budget: float = BUDGET) -> Answer:
    """Cancel the job, wherever it is. Raises redis-py's errors where Redis is away.

    Returns `removed` where it was waiting and is gone; `asked` where a worker runs it, or will drop it
    when it comes to it; `ended` where it is known that it was over. A running job ends when it looks at
    `self.cancelled` or calls `self.at()`; with `force` it is interrupted, as at a time limit, by `JobCancelled`
    (a coroutine by its cancellation). `budget`: so many seconds are spent on looking for it.
    """
    given: Any = jid
    if not isinstance(given, str) or not jid:
        raise ValueError(f"cancel() takes the jid of a job, not {jid!r}.")
    transport = current_transport()
    if transport is not real_transport():
        return _in_test_mode(transport, jid)
    place = locate(jid)
    if place is not None and place.state not in (*_WAITING, "working"):
        return "ended"
    asked.ask(jid, force=force)
    found = _look(Search(get_store().client, get_store().keys, jid, budget), place)
    if found is None or found.where == "worker":
        return "asked"
    return "removed" if _take_away(found) else "asked"


def _look(search: Search, place: Place | None) -> Spotted | None:
    """Where the job waits. A place that is known is looked at first; the job may just have moved on."""
    store = get_store()
    found: Spotted | None = None
    if place is not None and place.state == "working":
        return None
    if place is not None and place.state == "queued":
        found = search.in_queue(place.queue)
    elif place is not None:
        for where, key in (("schedule", store.keys.schedule), ("retry", store.keys.retry)):
            if found is None:
                found = search.in_set(where, key, place.at)  # type: ignore[arg-type]
    if place is not None:
        return found
    names = sorted(text(each) for each in store.client.smembers(store.keys.queues))
    return search.everywhere(names, dead=False)


def _take_away(found: Spotted) -> bool:
    effects = Effects("settled").of_run(Run(found.payload, "cancelled"))
    (verdict,) = get_store().remove(found.key, [(found.member, effects)])
    return verdict == 1


def _in_test_mode(transport: object, jid: str) -> Answer:
    discard = getattr(transport, "discard", None)
    if discard is None:
        return "ended"  # inline: every job runs at once
    collecting: CollectingTransport = transport  # type: ignore[assignment]
    payload = collecting.discard(jid)
    if payload is None:
        return "ended"
    Effects("settled").of_run(Run(payload, "cancelled"))
    return "removed"
