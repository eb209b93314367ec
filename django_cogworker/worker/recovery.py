"""Recovery: finds dead workers and brings back what they held.

One thread of every worker. Once a second it looks at the processes of its own host, which costs no
Redis call; every five seconds it asks Redis who has been silent too long. A worker is dead when its
process on this host is no more, or when it and nobody else has been silent for longer than
`COGWORKER_ORPHAN_THRESHOLD` (an outage, in which nobody can beat, makes nobody dead). The script
that moves the jobs judges anew, so any number of recoverers may act at once.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.features.asking import Effects
from django_cogworker.features.base import Run
from django_cogworker.jobs import registry
from django_cogworker.store.errors import is_ambiguous, is_unavailable
from django_cogworker.store.store import Store
from django_cogworker.store.values import Effect, Held, Recovered
from django_cogworker.worker import surroundings
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.identity import Membership, host_facts
from django_cogworker.worker.neighbours import host_rebooted, is_gone, read_facts, same_host
from django_cogworker.worker.orphans import Orphan, judge
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.settlement import attempt_effects
from django_cogworker.worker.started import forget_started, read_started
from django_cogworker.worker.supervision import Loss
from django_cogworker.worker.unread import warn_of_unread

logger = logging.getLogger("django_cogworker")

#: Seconds between looks at this host's processes, and between questions to Redis.
LOOK = 1.0
SURVEY = 5.0
#: Seconds that a dead neighbour is left alone because our supervisor will tell how it died.
WORD = 1.5
#: Every so many surveys, holders without any beat are looked for too.
FULL_SURVEY = 12
#: Jobs of a dead worker that one step moves, and silent workers that one survey names.
BATCH = 100
MOST_SILENT = 50


class Recovery:
    """The recoverer of one worker."""

    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        membership: Membership,
        outage: Outage,
        death: DeathHooks,
        turned: Callable[[], None],
        supervisor: int | None = None,
    ) -> None:
        """`supervisor`: its pid, where there is one; it tells of the loss of its other children."""
        self._store = store
        self._keys = store.keys
        self._verbs = store.recovering
        self._config = config
        self._membership = membership
        self._outage = outage
        self._death = death
        self._own_facts: dict[str, Any] = dict(host_facts())
        self._neighbours: dict[str, dict[str, Any]] = {}
        self._turned = turned
        self._supervisor = supervisor
        self._told: deque[tuple[Loss, Callable[[], None]]] = deque()
        self._first_missed: dict[str, float] = {}
        self._recovered, self._settled = Effects("recovered"), Effects("settled")
        #: Jobs that a call whose reply was lost may have buried.
        self._perhaps_buried: list[Orphan] = []
        self._surveys = 0
        self._wake = threading.Event()
        self._ended = False
        self._next_survey = 0.0
        #: Set while no silent worker's verdict is open: a burst worker waits for that.
        self.decided = threading.Event()
        #: True once that was so, and all who may be dead could be read.
        self.fates_known = False

    def told(self, loss: Loss, noted: Callable[[], None]) -> None:
        """The supervisor has lost another child; `noted` is called when that stands in Redis."""
        self._told.append((loss, noted))
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    def loop(self) -> None:
        """The thread's body."""
        try:
            while not self._ended:
                self._turned()
                try:
                    self.look()
                except (redis.RedisError, OSError) as error:
                    self._outage.failed("Recovering jobs of dead workers", error)
                self._wake.wait(LOOK)
                self._wake.clear()
        finally:
            surroundings.thread_ends()

    def look(self) -> int:
        """One look; how many jobs were recovered. Raises redis-py's errors."""
        self._learn_of_burials()
        recovered = self._act_on_losses()
        if not self._store.reliable:
            self.fates_known = True
            self.decided.set()  # where scripts are refused, nothing in progress is in Redis
            return recovered
        if time.monotonic() >= self._next_survey:
            self._next_survey = time.monotonic() + SURVEY
            recovered += self._survey()
        for identity, facts in list(self._neighbours.items()):
            if is_gone(facts) and not self._will_be_told(identity, facts):
                del self._neighbours[identity]
                reason = f"its process {facts.get('pid')} is gone"
                recovered += self._try(identity, facts, reason, gone=True)
        return recovered

    def _act_on_losses(self) -> int:
        """Recover what lost neighbours held, and write the losses down. What Redis being away
        interrupts is done again.
        """
        recovered = 0
        while self._told:
            loss, noted = self._told[0]
            facts = self._neighbours.pop(loss.identity, None)
            if loss.identity and self._store.reliable:
                if facts is None:
                    facts = read_facts(self._verbs.facts_of(loss.identity))
                ended = "with" if loss.how.startswith("exit") else "by"
                reason = f"its process {loss.pid} ended {ended} {loss.how}"
                recovered += self._try(loss.identity, facts, reason, gone=True, here=True)
            try:
                self._verbs.note_loss(loss.at, json.dumps(dataclasses.asdict(loss)))
            except redis.ResponseError as error:
                if is_unavailable(error):
                    raise
                self._outage.failed("Writing down a lost worker", error)
            self._told.popleft()
            noted()
        return recovered

    def _will_be_told(self, identity: str, facts: dict[str, Any]) -> bool:
        """Whether our supervisor is about to say how this neighbour ended, which we want to know."""
        if self._supervisor is None or facts.get("supervisor") != self._supervisor:
            return False
        now = time.monotonic()
        if len(self._first_missed) > MOST_SILENT:
            self._first_missed.clear()
        return now - self._first_missed.setdefault(identity, now) < WORD

    def _survey(self) -> int:
        full = self._surveys % FULL_SURVEY == 0
        self._surveys += 1
        threshold = self._config.orphan_threshold
        found = self._verbs.survey(
            self._own_facts.get("host_id", ""), threshold, MOST_SILENT, full=full
        )
        self._outage.over(wrote=False)
        for each in found.errors:
            self._outage.failed("Looking for dead workers", redis.ResponseError(each))
            self._surveys = 0
        own = self._membership.identity
        self._neighbours = {
            identity: facts
            for identity, text in found.neighbours
            if identity != own and same_host(facts := read_facts(text), self._own_facts)
        }
        recovered = 0
        undecided = False
        for identity, text in found.silent:
            if identity == own:
                continue
            facts = read_facts(text)
            here = same_host(facts, self._own_facts)
            if here and not is_gone(facts):
                # Its process is there and does not beat: stopped, or stuck. The beats decide.
                logger.debug("Worker %s is silent, though its process lives.", identity)
            count = self._try(
                identity, facts, "it was silent too long", gone=here and is_gone(facts)
            )
            undecided = undecided or count < 0
            recovered += max(0, count)
        if undecided:
            self.decided.clear()
        else:
            self.fates_known = self.fates_known or not found.errors
            self.decided.set()
        return recovered

    def _try(self, identity: str, facts: dict[str, Any], reason: str, **known: bool) -> int:
        """`_recover`, where a fault with this one worker holds up no other. Raises what says that
        Redis is away.
        """
        try:
            return self._recover(identity, facts, reason, **known)
        except Exception as error:
            if is_unavailable(error):
                raise
            self._outage.failed(f"Recovering the jobs of worker {identity}", error)
            return 0

    def _recover(
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

    def _learn_of_burials(self) -> None:
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
            surroundings.after_job(str(jid))
        except Exception:
            # Such as the database's. The job is dead all the same, and others wait to be brought back.
            logger.exception("The death hooks of job %s could not be run.", jid)
