"""The push: from a payload to a job that Redis has.

Every public way to enqueue comes through here, so all of them run the middleware, wait for a commit
and are idempotent. A payload is encoded before the call returns, so what the caller does with its
arguments afterwards does not matter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from asgiref.sync import sync_to_async

from django_cogworker.client import commit, hooks
from django_cogworker.client.chain import Push, build_chain, has_middleware
from django_cogworker.client.transport import current_transport
from django_cogworker.conf import PerConfig, get_config
from django_cogworker.exceptions import PushError
from django_cogworker.payload.codec import decode, stamp
from django_cogworker.payload.job import normalise, outgoing
from django_cogworker.signals import announce, job_enqueued, job_push_failed, job_refused
from django_cogworker.store.values import Outgoing, Refusal

logger = logging.getLogger("django_cogworker")

#: One round trip of a bulk push carries at most so many jobs and about so many bytes.
BULK_JOBS = 1000
BULK_BYTES = 2_000_000

OnCommit = bool | str | None


def push(payload: Mapping[str, Any], *, on_commit: OnCommit = None) -> str | None:
    """Enqueue a hand-made payload, for instance of a class that only the worker's project has.

    `{"class": "shop.jobs.SendReceipt", "args": [42]}` is enough; see `payload.job.normalise` for
    the fields and their defaults. Returns the jid, or `None` where a duplicate was refused. Raises
    `InvalidPayload`, `ArgumentError`, `PayloadTooLarge`, or `PushError` where Redis cannot take it.
    """
    return enqueue(normalise(payload), on_commit=on_commit)


def push_bulk(
    payloads: Iterable[Mapping[str, Any]], *, on_commit: OnCommit = None
) -> list[str | None]:
    """Enqueue many hand-made payloads in few round trips; their jids in order, `None` for
    duplicates.

    Takes any iterable and never holds more than a slice of it. Raises as `push` does; a
    `PushError` tells which jids were accepted before it.
    """
    return enqueue_many((normalise(each) for each in payloads), on_commit=on_commit)


apush = sync_to_async(push, thread_sensitive=True)
apush_bulk = sync_to_async(push_bulk, thread_sensitive=True)


class _Delivery:
    """What the innermost step does with an encoded job, for the call that is under way."""

    __slots__ = ("collected", "memo", "on_commit")

    def __init__(self, on_commit: OnCommit, collected: list[Outgoing] | None = None) -> None:
        self.on_commit = on_commit
        self.collected = collected
        self.memo: dict[str, Any] = {}


_delivery: ContextVar[_Delivery] = ContextVar("cogworker_delivery")


def call_memo() -> dict[str, Any]:
    """For client middleware: what it keeps from one job to the next of the same call."""
    return _delivery.get().memo


def enqueue(payload: dict[str, Any], *, on_commit: OnCommit = None) -> str | None:
    """Enqueue a complete payload; its jid, or `None` where it was refused."""
    return _through(_Delivery(on_commit), payload)


def enqueue_many(
    payloads: Iterable[dict[str, Any]], *, on_commit: OnCommit = None
) -> list[str | None]:
    """Enqueue complete payloads slice by slice. What Redis refuses holds up no other job: the error
    comes at the end.
    """
    jids: list[str | None] = []
    refused: list[tuple[Outgoing, Refusal]] = []
    for batch, places in _slices(payloads, on_commit, jids):
        try:
            verdicts = _hand_over(batch, on_commit)
        except PushError as error:
            now = {each.jid for each in batch}
            error.accepted = [each for each in jids if each is not None and each not in now]
            error.refused = [*(job.jid for job, _ in refused), *error.refused]
            raise
        for job, place, verdict in zip(batch, places, verdicts, strict=True):
            if verdict is None:
                continue
            jids[place] = None
            if not verdict.is_duplicate:
                refused.append((job, verdict))
    if refused:
        raise _refused_by_redis(refused, len(jids), [each for each in jids if each is not None])
    return jids


def _slices(
    payloads: Iterable[dict[str, Any]], on_commit: OnCommit, jids: list[str | None]
) -> Iterator[tuple[list[Outgoing], list[int]]]:
    """Encoded slices with the places of their jobs in `jids`, which grows meanwhile."""
    batch: list[Outgoing] = []
    places: list[int] = []
    size = 0
    delivery = _Delivery(on_commit, batch)
    for payload in payloads:
        before = len(batch)
        jids.append(_through(delivery, payload))
        for job in batch[before:]:
            places.append(len(jids) - 1)
            size += len(job.payload)
        if len(batch) >= BULK_JOBS or size >= BULK_BYTES:
            yield batch, places
            batch, places, size = [], [], 0
            delivery.collected = batch
    if batch:
        yield batch, places


def _through(delivery: _Delivery, payload: dict[str, Any]) -> str | None:
    if not has_middleware():
        return _innermost(delivery, payload)
    token = _delivery.set(delivery)
    try:
        return _chain()(payload)
    finally:
        _delivery.reset(token)


def _end_of_chain(payload: dict[str, Any]) -> str | None:
    return _innermost(_delivery.get(), payload)


_chain: PerConfig[Push] = PerConfig(lambda config: build_chain(_end_of_chain))


def _innermost(delivery: _Delivery, payload: dict[str, Any]) -> str | None:
    job = outgoing(payload, get_config())
    _warn_of_size(job, payload)
    for hook in hooks.push_hooks:
        parts = hook(payload)
        if parts is not None:
            job.guards += parts.guards
            job.effects += parts.effects
            job.taken = parts.taken or job.taken
    if delivery.collected is not None:
        delivery.collected.append(job)
        return job.jid
    refusal = _hand_over([job], delivery.on_commit)[0]
    if refusal is not None and not refusal.is_duplicate:
        raise _refused_by_redis([(job, refusal)], 1, [])
    if refusal is None:
        return job.jid
    for tell in hooks.refusal_hooks:
        tell(payload, refusal.holder)
    return None


def _warn_of_size(job: Outgoing, payload: dict[str, Any]) -> None:
    limit = get_config().payload_warn
    if len(job.payload) > limit:
        logger.warning(
            "%s was enqueued with a payload of %d bytes; more than COGWORKER_PAYLOAD_WARN (%d) makes "
            "Redis and workers slow.",
            payload["class"],
            len(job.payload),
            limit,
            extra={"jid": job.jid, "job_class": payload["class"]},
        )


def _hand_over(jobs: Sequence[Outgoing], on_commit: OnCommit) -> Sequence[Refusal | None]:
    """Push now, or when the transaction commits (then nothing is refused yet)."""
    wish = get_config().enqueue_on_commit if on_commit is None else on_commit
    aliases = commit.aliases_to_wait_for(wish)
    if aliases:
        transport = current_transport()
        if not transport.waits_for_commit:
            _push_now(jobs)
            return [None] * len(jobs)
        commit.defer(jobs, aliases, _push_after_commit, any_alias=wish is True, transport=transport)
        return [None] * len(jobs)
    return _push_now(jobs)


def _refused_by_redis(
    refused: Sequence[tuple[Outgoing, Refusal]], of: int, accepted: list[str]
) -> PushError:
    return PushError(
        f"{len(refused)} of {of} jobs were refused by Redis: {refused[0][1].reason}.",
        accepted=accepted,
        refused=[job.jid for job, _ in refused],
    )


def _push_now(jobs: Sequence[Outgoing]) -> Sequence[Refusal | None]:
    for job in jobs:
        if job.at is None:
            job.payload = stamp(job.payload)
    verdicts = current_transport().push(jobs)
    for job, refusal in zip(jobs, verdicts, strict=True):
        if job.taken is not None and refusal is None:
            job.taken()
    if job_enqueued.receivers:
        for job, refusal in zip(jobs, verdicts, strict=True):
            if refusal is None:
                _announce(job, announce_as=_enqueued)
    return verdicts


def _enqueued(sender: Any, jid: str, payload: dict[str, Any]) -> None:
    announce(job_enqueued, sender, jid=jid, payload=payload)


def _announce(job: Outgoing, announce_as: Callable[[Any, str, dict[str, Any]], None]) -> None:
    payload = decode(job.payload)
    announce_as(hooks.find_sender(payload["class"]), job.jid, payload)


def _push_after_commit(jobs: Sequence[Outgoing]) -> None:
    """The commit has happened: nothing may raise here, or other commit hooks would not run."""
    try:
        verdicts = _push_now(jobs)
    except Exception as error:
        refused = set(error.refused) if isinstance(error, PushError) else {job.jid for job in jobs}
        for job in jobs:
            if job.jid in refused:
                _lost_after_commit(job, error)
        return
    for job, refusal in zip(jobs, verdicts, strict=True):
        if refusal is None:
            continue
        if not refusal.is_duplicate:
            _lost_after_commit(job, PushError(refusal.reason, refused=[job.jid]))
            continue
        logger.info(
            "Job %s was refused as a duplicate when its transaction had committed.",
            job.jid,
            extra={"jid": job.jid},
        )
        _announce(
            job,
            lambda sender, jid, payload: announce(job_refused, sender, jid=jid, payload=payload),
        )


def _lost_after_commit(job: Outgoing, error: Exception) -> None:
    logger.error(
        "Job %s could not be enqueued after its transaction had committed (%s). Its payload: %s",
        job.jid,
        error,
        job.payload.decode("ascii"),
        extra={"jid": job.jid},
    )
    _announce(
        job,
        lambda sender, jid, payload: announce(
            job_push_failed, sender, jid=jid, payload=payload, error=error
        ),
    )
