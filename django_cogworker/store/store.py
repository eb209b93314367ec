"""The store: one handle to Redis for everything above this floor.

It is made from the config at first use and opens no connection before it is asked something. It
chooses the verbs: scripts, or single commands where the config says `basic` or where the server
turns out to refuse scripts, which is said once.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis

from django_cogworker.conf import Config, PerConfig
from django_cogworker.store.connection import CALL_TIMEOUT, make_client
from django_cogworker.store.errors import refuses_scripts
from django_cogworker.store.keys import Keys
from django_cogworker.store.plain import PlainVerbs
from django_cogworker.store.quarantine import Quarantine
from django_cogworker.store.recovering import RecoveryVerbs
from django_cogworker.store.refiling import Refiling
from django_cogworker.store.scripted import ScriptedVerbs, text
from django_cogworker.store.target import Target, resolve
from django_cogworker.store.values import (
    Beat,
    BeatReply,
    DueJobs,
    Effect,
    ExchangeReply,
    ExchangeRequest,
    Guard,
    Move,
    Outgoing,
    Refusal,
)
from django_cogworker.store.verbs import Verbs

logger = logging.getLogger("django_cogworker")

T = TypeVar("T")

#: Seconds that an idle worker blocks on its tokens before it looks by itself.
BLOCK = 2
#: Seconds that the bulletin's number is kept after the last change: longer than anything it announces.
BULLETIN_TTL = 30 * 86_400
#: The first versions whose commands our scripts need.
MINIMUM_VERSION = (6, 2)


class Store:
    """Pools, key names and verbs for one server."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.keys = Keys(config.key_prefix)
        self.target: Target = resolve(config)
        # Every processor may push while it runs a job, and each service thread has its own calls. Helpers of the
        # event loop share a few.
        size = max(10, config.concurrency) + (15 if config.async_queues else 5)
        self.client = make_client(self.target, size=size, name="cogworker")
        self._blocking = make_client(
            self.target, size=2, name="cogworker-wait", call_timeout=BLOCK + CALL_TIMEOUT
        )
        #: Finding dead workers and bringing back their jobs.
        self.recovering = RecoveryVerbs(self.client, self.keys, config)
        self.quarantine = Quarantine(self.client, self.keys)
        self._plain = PlainVerbs(self.client, self.keys, config)
        self._verbs: Verbs = self._plain
        if config.fetch == "reliable":
            self._verbs = ScriptedVerbs(self.client, self.keys, config)
        self._switch = threading.Lock()
        #: When the last push gave up because Redis was away (monotonic).
        self.gave_up_at = -math.inf

    @property
    def description(self) -> str:
        """Where Redis is, without credentials."""
        return self.target.description

    @property
    def reliable(self) -> bool:
        return self._verbs.reliable

    def close(self) -> None:
        """Close the idle connections. The store stays usable: it opens new ones when asked."""
        self.client.connection_pool.disconnect(inuse_connections=False)
        self._blocking.connection_pool.disconnect(inuse_connections=False)

    # The verbs.

    def push(self, lane: str, number: int, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        return self._do(lambda verbs: verbs.push(lane, number, jobs))

    def exchange(self, request: ExchangeRequest) -> ExchangeReply:
        return self._do(lambda verbs: verbs.exchange(request))

    def mark_started(self, identity: str, ticket: int) -> bool:
        return self._do(lambda verbs: verbs.mark_started(identity, ticket))

    def due(self, limit: int) -> DueJobs:
        return self._do(lambda verbs: verbs.due(limit))

    def graduate(self, source: str, moves: Sequence[Move]) -> list[int | str]:
        return self._do(lambda verbs: verbs.graduate(source, moves))

    def beat(self, beat: Beat) -> BeatReply:
        return self._do(lambda verbs: verbs.beat(beat))

    def leave(self, identity: str, host: str = "") -> int:
        return self._do(lambda verbs: verbs.leave(identity, host))

    def remove(
        self, key: str, members: Sequence[tuple[bytes, tuple[Effect, ...]]]
    ) -> list[int | str]:
        """Take jobs, with their effects, out of a queue's list or a set; per job 1, 0 (gone) or an
        error text.
        """
        return self._do(lambda verbs: verbs.remove(key, members))

    def refile(self, source: str, items: Sequence[Refiling]) -> list[int | str]:
        """Move jobs from where they wait (a key); per job 1, 0 (gone) or an error text (it stays)."""
        return self._do(lambda verbs: verbs.refile(source, items))

    def apply(self, effects: Sequence[Effect]) -> None:
        """Carry out effects on their own, in one round trip."""
        self._do(lambda verbs: verbs.apply(effects))

    def claim(self, guard: Guard, effects: Sequence[Effect] = ()) -> Refusal | None:
        """Claim a guard outside a push, and carry out effects where that succeeds."""
        refusal = self._plain.claim(guard)
        if refusal is None and effects:
            self._plain.apply(effects)
        return refusal

    def post_bulletin(self) -> None:
        """Have every worker look at once for what features have for it."""
        pipe = self.client.pipeline(transaction=True)
        pipe.incr(self.keys.bulletin)
        pipe.expire(self.keys.bulletin, BULLETIN_TTL)
        pipe.execute()

    def pause(self, queue: str) -> bool:
        """Stop fetching from a queue everywhere; false where it was paused already."""
        return bool(self.client.sadd(self.keys.paused, queue))

    def resume(self, queue: str) -> bool:
        return self._do(lambda verbs: verbs.resume(queue))

    def signal(self, identity: str, command: str) -> bool:
        return self._do(lambda verbs: verbs.signal(identity, command))

    def wait_for_token(self, queues: Sequence[str]) -> bool:
        """Block until a token of these queues (or of the schedule) comes; false after `BLOCK`
        seconds.
        """
        keys = [self.keys.queue(each).tokens for each in queues]
        found = self._blocking.blpop([*keys, self.keys.due_tokens], timeout=BLOCK)
        return found is not None

    def _do(self, verb: Callable[[Verbs], T]) -> T:
        verbs = self._verbs
        try:
            return verb(verbs)
        except redis.ResponseError as error:
            if verbs is self._plain or not refuses_scripts(error):
                raise
            self._fall_back(f"the server refuses scripts ({error})")
        return verb(self._plain)

    def _fall_back(self, reason: str) -> None:
        with self._switch:
            if self._verbs is self._plain:
                return
            self._verbs = self._plain
        logger.warning(
            "Working in basic mode, because %s: a job that runs is lost if its worker is killed.",
            reason,
        )

    # What the server is like.

    def choose_mode(self) -> None:
        """Ask the server's version and leave scripts alone where it is too old. Raises if it is
        away.
        """
        if not self._verbs.reliable:
            return
        try:
            facts = self.client.info("server")
            version = tuple(int(each) for each in str(facts["redis_version"]).split(".")[:2])
        except (redis.ResponseError, KeyError, ValueError) as error:
            logger.debug(
                "The server does not tell its version (%r); taking it as new enough.", error
            )
            return
        if version < MINIMUM_VERSION:
            self._fall_back(f"its version is {facts['redis_version']}, older than 6.2")

    def durability_warnings(self) -> list[str]:
        """What about the server's settings would lose jobs, in sentences."""
        found: list[str] = []
        try:
            memory = self.client.info("memory")
            persistence = self.client.info("persistence")
        except redis.ResponseError as error:
            return [f"The server does not tell its settings ({error})."]
        policy = str(memory.get("maxmemory_policy", "noeviction"))
        if policy != "noeviction":
            found.append(
                f"Redis evicts keys when it is full (maxmemory-policy is {policy}): jobs can vanish. "
                "Set it to noeviction."
            )
        if not persistence.get("aof_enabled") and not self._saves_snapshots():
            found.append(
                "Redis keeps nothing on disk (neither appendonly nor save is on): a restart of it "
                "loses all jobs."
            )
        return found

    def _saves_snapshots(self) -> bool:
        try:
            answer: dict[Any, Any] = self.client.config_get("save")
        except redis.ResponseError:
            return True  # CONFIG is forbidden: nothing to warn of for sure
        return any(text(each).strip() for each in answer.values())


get_store: PerConfig[Store] = PerConfig(Store, Store.close)
