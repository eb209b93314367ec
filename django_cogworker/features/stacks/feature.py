"""A worker's part: it takes the wish, looks where its jobs are, and writes that down.

The looking is done by a thread of its own: the one that hears of the wish has beats to send, or jobs to fetch.
"""

from __future__ import annotations

import logging
import threading
import time

import redis

from django_cogworker.features.base import Feature, Worker
from django_cogworker.features.stacks import wishes
from django_cogworker.features.stacks.looking import stacks_of
from django_cogworker.jobs.context import running_jobs

logger = logging.getLogger("django_cogworker")

#: Running jobs that are told of, those that run for the longest time first; and of each stack so many characters.
MOST = 100
MAX_STACK = 10_000


class Stacks(Feature):
    name = "stacks"

    def __init__(self) -> None:
        #: The worker that this process is; none before it works.
        self._worker: Worker | None = None

    def attached(self, worker: Worker) -> None:
        self._worker = worker

    def bulletin(self) -> None:
        worker = self._worker
        if worker is None or not wishes.take_wish(worker.identity):
            return
        threading.Thread(
            target=_answer, args=(worker.identity,), name="cogworker-stacks", daemon=True
        ).start()


def _answer(identity: str) -> None:
    try:
        at = time.time()
        jobs, more = _taken()
        wishes.answer(identity, at, jobs, more)
    except (redis.RedisError, OSError) as error:
        logger.warning("Stacks that were asked for could not be written down (%s).", error)
    except Exception:
        logger.exception("Stacks that were asked for could not be read.")


def _taken() -> tuple[list[wishes.JobStack], int]:
    """Where the jobs are, and how many are left out."""
    runs = sorted(running_jobs(), key=lambda each: each.began_at)
    chosen = runs[:MOST]
    told = [
        wishes.JobStack(
            run.jid,
            str(run.payload.get("class", "")),
            str(run.payload.get("queue", "")),
            run.began_at,
            stack[-MAX_STACK:],
        )
        for run, stack in zip(chosen, stacks_of(chosen), strict=True)
        if stack
    ]
    return told, len(runs) - len(chosen)
