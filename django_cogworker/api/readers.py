"""A queue and the workers that read it, as far as they hold up its jobs. As of the workers' last beats."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from django_cogworker.api.processes import Process, ProcessSet
from django_cogworker.api.replies import number
from django_cogworker.features.base import Reason
from django_cogworker.store.store import Store


class Readers:
    """Asks Redis three times, whatever it holds: for the names of the workers, for what they say of themselves,
    and for the queue.
    """

    def __init__(self, store: Store, queue: str, job_class: str) -> None:
        self._queue = queue
        self._class = job_class
        # A list of the set itself would ask for its length first, which is as dear as the list.
        self._alive = list(iter(ProcessSet()))
        self._reading = [each for each in self._alive if _reads(each, queue)]
        digests = sorted({digest for each in self._reading if (digest := _digest(each))})
        keys = store.keys
        pipe: Any = store.client.pipeline(transaction=False)
        pipe.time()
        pipe.sismember(keys.paused, queue)
        pipe.llen(keys.queue(queue).jobs)
        pipe.zcard(keys.queue(queue).priority)
        for each in digests:
            pipe.hlen(keys.classes(each))
            pipe.hexists(keys.classes(each), job_class)
        (seconds, micros), paused, listed, prioritised, *known = pipe.execute(raise_on_error=False)
        #: By Redis's clock.
        self.now = float(seconds) + float(micros) / 1e6
        self._paused = number(paused) == 1
        self._waiting = number(listed) + number(prioritised)
        #: Of each digest whose names are known: whether the class is one of them.
        self._known = {
            digest: number(known[2 * at + 1]) == 1
            for at, digest in enumerate(digests)
            if number(known[2 * at])
        }

    def obstacles(self) -> list[Reason]:
        """What keeps every worker from jobs of this queue, or from this job."""
        reasons = []
        if self._paused:
            text = _("The queue %(queue)s is paused.") % {"queue": self._queue}
            reasons.append(Reason("paused", text, {"queue": self._queue}))
        reason = self._nobody() or self._nobody_knows()
        return [*reasons, reason] if reason else reasons

    def turn(self, *, alone: bool) -> list[Reason]:
        """Why a job that is due has to wait for others; where `alone`, only if that is for sure."""
        working = [each for each in self._reading if not each.is_quiet]
        busy = [each for each in working if _is_busy(each, self._queue)]
        said = {"queue": self._queue, "waiting": self._waiting}
        said |= {"busy": len(busy), "workers": len(working)}
        if working and len(busy) == len(working):
            text = _("All workers that read the queue %(queue)s are busy (%(workers)s).")
            return [Reason("busy", text % said, said)]
        if alone:
            return []
        text = _(
            "Nothing holds it up but its turn. Jobs on the queue %(queue)s: %(waiting)s; workers that read it: "
            "%(workers)s, of which busy: %(busy)s."
        )
        return [Reason("turn", text % said, said)]

    def _nobody(self) -> Reason | None:
        said: dict[str, Any] = {"queue": self._queue, "workers": len(self._alive)}
        if not self._alive:
            return Reason("no_worker", _("No worker runs."), said)
        if not self._reading:
            text = _("No worker reads the queue %(queue)s (workers: %(workers)s).")
            return Reason("unread", text % said, said)
        said["workers"] = len(self._reading)
        if all(each.is_quiet for each in self._reading):
            text = _("All workers that read the queue %(queue)s are quiet (%(workers)s).")
            return Reason("quiet", text % said, said)
        return None

    def _nobody_knows(self) -> Reason | None:
        """A worker that does not tell its classes may know this one."""
        if any(self._known.get(_digest(each), True) for each in self._reading):
            return None
        said = {"class": self._class, "workers": len(self._reading)}
        text = _(
            "No worker that reads its queue knows the class %(class)s (workers: %(workers)s): it waits for a deploy "
            "that brings it."
        )
        return Reason("unknown_class", text % said, said)


def _digest(process: Process) -> str:
    return str(process.info.get("classes", ""))


def _on_loop(process: Process, queue: str) -> bool:
    return queue in process.info.get("async_queues", ())


def _reads(process: Process, queue: str) -> bool:
    return _on_loop(process, queue) or queue in process.info.get("queues", ())


def _is_busy(process: Process, queue: str) -> bool:
    """Whether each place is taken on which a job of this queue could run."""
    info = process.info
    on_loop = int(info.get("async_busy", 0))
    if _on_loop(process, queue):
        return on_loop >= int(info.get("async_concurrency", 1))
    return process.busy - on_loop >= int(info.get("concurrency", 1))
