"""A worker's part in cancelling: it drops what waits, lets the running job know, and interrupts it where that is
wanted.
"""

from __future__ import annotations

import threading
from typing import Any

from django.utils.translation import gettext as _

from django_cogworker.exceptions import JobCancelled
from django_cogworker.features.base import Feature, Reason, Refused, Worker
from django_cogworker.features.cancel import asked
from django_cogworker.features.cancel.asked import Wishes
from django_cogworker.features.interrupting.insistence import Insistence
from django_cogworker.features.interrupting.stuck import stuck_jobs
from django_cogworker.features.moments import moment
from django_cogworker.jobs.context import running_jobs


class CancelFeature(Feature):
    """The guest. It keeps the jids in memory, so nobody asks Redis when a job starts."""

    name = "cancel"

    def __init__(self) -> None:
        self._wishes = Wishes()
        #: The runs (by `id`) that are being interrupted.
        self._insisted: set[int] = set()
        self._lock = threading.Lock()

    def attached(self, worker: Worker) -> None:
        stuck_jobs.worker = worker

    def bulletin(self) -> None:
        self._wishes = asked.read()
        self._interrupt()

    def beat(self) -> None:
        """Again: a job may have been about to start when the wish came."""
        self._interrupt()

    def _interrupt(self) -> None:
        """Begin to insist on the end of those that are to be interrupted. From two threads."""
        forced = self._wishes.forced
        if not forced:
            return
        with self._lock:
            wanted = {id(each): each for each in running_jobs() if each.jid in forced}
            new = wanted.keys() - self._insisted
            self._insisted = set(wanted)
        for each in new:
            jid = wanted[each].jid
            Insistence(wanted[each], JobCancelled, f"Job {jid} was cancelled while it was running.")

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        if not self.cancelled(payload):
            return None
        return Refused("cancelled", "somebody cancelled it")

    def cancelled(self, payload: dict[str, Any]) -> bool:
        return payload["jid"] in self._wishes.all

    def holding_up(self, payload: dict[str, Any], state: str) -> tuple[Reason, ...]:
        """The wish as it stands in Redis: who asks is mostly no worker."""
        since = asked.since(payload["jid"])
        if since is None:
            return ()
        if state == "working":
            text = _("Somebody asked it to end at %(when)s.")
        else:
            text = _("Somebody cancelled it at %(when)s: the worker that comes to it drops it.")
        return (Reason("cancelled", text % {"when": moment(since)}, {"since": since}),)

    def excused(self, payload: dict[str, Any], error: BaseException) -> Refused | None:
        """A job that ends by `JobCancelled` was cancelled, where somebody did ask for it."""
        if isinstance(error, JobCancelled) and self.cancelled(payload):
            return Refused("cancelled", "it ended because somebody cancelled it")
        return None
