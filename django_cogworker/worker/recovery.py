"""Recovery: finds dead workers and has what they held brought back (`rescue`).

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
from collections.abc import Callable
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.store import Store
from django_cogworker.worker import surroundings
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.identity import Membership, host_facts
from django_cogworker.worker.neighbours import is_gone, read_facts, same_host
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.rescue import Rescue
from django_cogworker.worker.supervision import Loss

logger = logging.getLogger("django_cogworker")

#: Seconds between looks at this host's processes, and between questions to Redis.
LOOK = 1.0
SURVEY = 5.0
#: Seconds that a dead neighbour is left alone because our supervisor will tell how it died.
WORD = 1.5
#: Every so many surveys, holders without any beat are looked for too.
FULL_SURVEY = 12
#: Silent workers that one survey names.
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
        self._verbs = store.recovering
        self._config = config
        self._membership = membership
        self._outage = outage
        self._own_facts: dict[str, Any] = dict(host_facts())
        self._rescue = Rescue(store=store, config=config, own_facts=self._own_facts, death=death)
        self._neighbours: dict[str, dict[str, Any]] = {}
        self._turned = turned
        self._supervisor = supervisor
        self._told: deque[tuple[Loss, Callable[[], None]]] = deque()
        self._first_missed: dict[str, float] = {}
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
        self._rescue.learn_of_burials()
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
        """`bring_back`, where a fault with this one worker holds up no other. Raises what says that
        Redis is away.
        """
        try:
            return self._rescue.bring_back(identity, facts, reason, **known)
        except Exception as error:
            if is_unavailable(error):
                raise
            self._outage.failed(f"Recovering the jobs of worker {identity}", error)
            return 0
