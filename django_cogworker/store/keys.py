"""The names of all keys. Nobody else spells one.

The model, key by key, stands in `docs/internals/redis.md`.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class QueueKeys:
    """The three keys of one queue."""

    jobs: str  # list: new jobs on the left, the next one to run on the right
    priority: str  # sorted set: the jobs with a priority other than 0
    tokens: str  # list: at most one token that wakes an idle worker


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
    """Builds key names under one prefix."""

    prefix: str

    # Registries and sets of jobs.

    @property
    def queues(self) -> str:
        """set: the names of all queues that ever held a job or were read by a worker."""
        return f"{self.prefix}queues"

    @property
    def paused(self) -> str:
        """set: the names of the paused queues."""
        return f"{self.prefix}paused_queues"

    @property
    def schedule(self) -> str:
        """sorted set: score = due time, member = job."""
        return f"{self.prefix}schedule"

    @property
    def retry(self) -> str:
        """sorted set: score = time of the next attempt, member = job with its failure."""
        return f"{self.prefix}retry"

    @property
    def dead(self) -> str:
        """sorted set: score = time of death, member = job with its failure."""
        return f"{self.prefix}dead"

    def queue(self, name: str) -> QueueKeys:
        base = f"{self.prefix}queue:{name}"
        return QueueKeys(base, f"{base}:priority", f"{base}:tokens")

    @property
    def due_tokens(self) -> str:
        """list: a token that wakes one idle worker because a job was scheduled for soon."""
        return f"{self.prefix}schedule:tokens"

    # Workers.

    @property
    def processes(self) -> str:
        """set: identities of the workers that beat."""
        return f"{self.prefix}processes"

    def process(self, identity: str) -> str:
        """hash with a TTL: the presence of a worker (info, busy, quiet, beat)."""
        return f"{self.prefix}process:{identity}"

    @property
    def beats(self) -> str:
        """sorted set: identity scored by Redis's time of its last beat."""
        return f"{self.prefix}beats"

    @property
    def fleet_since(self) -> str:
        """string: the time since which some worker has beaten without a gap."""
        return f"{self.prefix}fleet_since"

    @property
    def fleet_beat(self) -> str:
        """string with a TTL: some worker has beaten a moment ago."""
        return f"{self.prefix}fleet_beat"

    @property
    def members(self) -> str:
        """hash: identity -> facts about its host and process (JSON), of workers that beat."""
        return f"{self.prefix}members"

    def host(self, host: str) -> str:
        """set with a TTL: the identities on one host, by a hash of what tells hosts apart."""
        return f"{self.prefix}host:{host}"

    def classes(self, digest: str) -> str:
        """hash with a TTL: the names of the job classes that workers with this digest know."""
        return f"{self.prefix}classes:{digest}"

    def workers(self, identity: str) -> str:
        """hash: ticket -> what the worker holds in progress. The whole truth about it."""
        return f"{self.prefix}workers:{identity}"

    @property
    def holders(self) -> str:
        """hash: identity -> the ticket that comes next, of workers that may hold jobs."""
        return f"{self.prefix}holders"

    def tombstone(self, identity: str) -> str:
        """string with a TTL: this identity has left or was buried; a late fetch of it is refused."""
        return f"{self.prefix}tombstone:{identity}"

    def signal(self, identity: str) -> str:
        """string with a TTL: the last remote command for a worker."""
        return f"{self.prefix}signal:{identity}"

    @property
    def losses(self) -> str:
        """sorted set with a TTL: score = time, member = a worker process that was lost (JSON)."""
        return f"{self.prefix}losses"

    # Features.

    @property
    def bulletin(self) -> str:
        """string with a TTL: a number that changes when features have something for every worker."""
        return f"{self.prefix}bulletin"

    def of(self, feature: str, *parts: str) -> str:
        """A key of a feature's own."""
        return self.prefix + ":".join((feature, *parts))

    # What went wrong.

    def quarantine(self, key: str) -> str:
        """The beginning of the names of copies of a key that had the wrong type."""
        return f"{self.prefix}quarantine:{key}"

    @property
    def quarantined(self) -> str:
        """sorted set with a TTL: score = time, member = name of such a copy."""
        return f"{self.prefix}quarantined"

    # Clients.

    def lane(self, lane: str) -> str:
        """string with a TTL: number and result of the last push on this lane."""
        return f"{self.prefix}lane:{lane}"

    # Counters and records.

    @property
    def processed(self) -> str:
        return f"{self.prefix}stats:processed"

    @property
    def failed(self) -> str:
        return f"{self.prefix}stats:failed"

    def throughput(self, hour: int) -> str:
        """hash with a TTL: `processed` and `failed` of one hour (epoch seconds // 3600)."""
        return f"{self.prefix}throughput:{hour}"

    def attempts(self, jid: str) -> str:
        """list with a TTL: the last failed attempts of a job, oldest first."""
        return f"{self.prefix}job_attempts:{jid}"
