"""The rescue: what one dead worker held is brought back.

In batches, the newest job first, so that the oldest runs first again. `orphans` says where each goes; one
script moves them and judges anew whether the worker is dead, so several rescuers of one worker do no harm.
Whoever's call buried a job runs its death hooks. Where the reply to it was lost, a look at the dead set
tells afterwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.features.asking import Effects
from django_cogworker.features.base import Run
from django_cogworker.jobs import registry
from django_cogworker.store.errors import is_ambiguous
from django_cogworker.store.store import Store
from django_cogworker.store.values import Effect, Held, Recovered
from django_cogworker.worker import surroundings
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.neighbours import host_rebooted, is_gone, same_host
from django_cogworker.worker.orphans import Orphan, judge
from django_cogworker.worker.settlement import attempt_effects
from django_cogworker.worker.started import forget_started, read_started
from django_cogworker.worker.unread import warn_of_unread

logger = logging.getLogger("django_cogworker")

#: Jobs of a dead worker that one step moves.
BATCH = 100


class Rescue:
    """The one of a recoverer, in its thread."""

    def __init__(
        self, *, store: Store, config: Config, own_facts: dict[str, Any], death: DeathHooks
    ) -> None:
        """`own_facts`: those about this worker's host."""
        self._keys = store.keys
        self._verbs = store.recovering
        self._config = config
        self._own_facts = own_facts
        self._death = death
        self._recovered, self._settled = Effects("recovered"), Effects("settled")
        #: Jobs that a call whose reply was lost may have buried.
        self._perhaps_buried: list[Orphan] = []

    def bring_back(
        self,
        identity: str,
        facts: dict[str, Any],
        reason: str,
        *,
        gone: bool,
        here: bool = False,
    ) -> int:
        """Move everything the dead worker held; how many jobs, or -1 where it is not dead (yet).

        `here`: it is known to have run on this host, whatever the facts tell.
        """
        file = str(facts.get("started", ""))
        started = read_started(file) if here or same_host(facts, self._own_facts) else None
        counts = not host_rebooted(facts, self._own_facts)
        if not counts:
            reason = "its host was started anew"
        total, skipped = 0, 0
        queues: set[str] = set()
        while True:
            held = self._verbs.held_by(identity, BATCH, skip=skipped)
            orphans = [self._judge(each, started, counts, reason) for each in held]
            try:
                reply = self._verbs.recover(
                    identity,
                    host=str(facts.get("host_id", "")),
                    gone=gone,
                    threshold=self._config.orphan_threshold,
                    orphans=[self._to_move(*each) for each in zip(held, orphans, strict=True)],
                )
            except (redis.RedisError, OSError) as error:
                if is_ambiguous(error):
                    self._perhaps_buried += [each for each in orphans if each.fate == "dead"]
                raise
            if not reply.dead:
                return -1
            moved = self._take_verdicts(identity, orphans, reply.verdicts)
            queues.update(each.queue for each in orphans if each.fate != "dead")
            total += moved
            skipped += len(held) - moved
            if len(held) < BATCH:
                break
        # One that was only slow goes on, and goes on writing to it.
        lives = same_host(facts, self._own_facts) and not is_gone(facts)
        if (total or not skipped) and not lives:
            forget_started(file)
        if total:
            logger.warning(
                "Worker %s is dead (%s); %d jobs that it held were recovered.",
                identity,
                reason,
                total,
            )
            warn_of_unread(self._verbs, self._config.read_queues, queues)
        return total

    def learn_of_burials(self) -> None:
        """Whose reply was lost: the hooks of a job that we have buried are ours to run."""
        while self._perhaps_buried:
            orphan = self._perhaps_buried[-1]
            # The record has the moment of our decision, so no other recoverer has written these bytes.
            buried = self._verbs.is_dead(orphan.payload)
            self._perhaps_buried.pop()
            if buried and orphan.error is not None and orphan.job is not None:
                self._buried(orphan.job, orphan.error, ran=orphan.ran)

    def _judge(
        self, held: Held, started: frozenset[int] | None, counts: bool, reason: str
    ) -> Orphan:
        return judge(
            held,
            started=started is None or held.ticket in started,
            counts=counts,
            limit=self._config.max_orphanings,
            reason=reason,
        )

    def _to_move(self, held: Held, orphan: Orphan) -> Recovered:
        effects: tuple[Effect, ...] = ()
        if orphan.job is not None and orphan.ran:
            outcome = "retrying" if orphan.fate == "retry" else "dead"
            wait = max(0.0, orphan.delay - time.time()) if outcome == "retrying" else 0.0
            effects += self._settled.of_run(
                Run(orphan.job, outcome, error=orphan.error, delay=wait)
            )
        elif orphan.job is not None:
            if orphan.error is not None:
                effects += attempt_effects(
                    self._keys, orphan.job, orphan.error, "dead", time.time()
                )
            effects += self._recovered.of(orphan.job, orphan.fate)
        return Recovered(
            held,
            orphan.fate,
            orphan.payload,
            orphan.queue,
            orphan.priority,
            orphan.delay,
            effects,
        )

    def _take_verdicts(
        self, identity: str, orphans: Sequence[Orphan], verdicts: Sequence[int | str]
    ) -> int:
        moved = 0
        for orphan, verdict in zip(orphans, verdicts, strict=True):
            if isinstance(verdict, str):
                logger.error(
                    "A job of the dead worker %s cannot be moved to queue %s (%s); it stays where it is.",
                    identity,
                    orphan.queue,
                    verdict,
                )
            elif verdict == 1:
                moved += 1
                if orphan.error is not None and orphan.job is not None:
                    self._buried(orphan.job, orphan.error, ran=orphan.ran)
        return moved

    def _buried(self, job: dict[str, Any], error: BaseException, *, ran: bool) -> None:
        """The death hooks, run by the recoverer whose script moved the job."""
        name, jid = job.get("class", ""), job.get("jid")
        logger.error(
            "%s %s is in the dead set: %s", name, jid, error, extra={"jid": jid, "job_class": name}
        )
        try:
            surroundings.before_job()
            # Of a failure that only had not been filed its own worker has told all but the death.
            tell = self._death.run if ran else self._death.buried
            tell(registry.lookup(name), job, error)
            surroundings.tidy(str(jid))
        except Exception:
            # Such as the database's. The job is dead all the same, and others wait to be brought back.
            logger.exception("The death hooks of job %s could not be run.", jid)
