"""Jobs that may not run side by side stand in line: whoever frees the lock has the first of them go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from django_cogworker import api
from django_cogworker.conf import get_config
from django_cogworker.features.base import Refused, Run
from django_cogworker.features.unique import feature as unique_feature
from django_cogworker.features.unique import locks
from django_cogworker.store.keys import Keys
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import (
    Disposition,
    Effect,
    ExchangeReply,
    ExchangeRequest,
    Held,
    Outgoing,
    Recovered,
    Settlement,
)
from tests.project.jobs import Append
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until
from tests.uniquejobs.jobs import Alone, Brief

ME = "host:1:aaaaaaaaaaaa"
LOCK, LINE = "cogworker:unique:lock:k", "cogworker:unique:waiters:k"
NEVER = 5_000.0


@pytest.fixture(autouse=True)
def no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by himself within the test: who goes on was told."""
    monkeypatch.setattr(unique_feature, "FIRST_LOOK", NEVER)
    monkeypatch.setattr(unique_feature, "LAST_LOOK", NEVER)


@pytest.fixture
def client(redis_url: str, redis_client: Any) -> Any:
    return redis_client


@pytest.fixture
def unique() -> unique_feature.Unique:
    return unique_feature.Unique()


# -- in a worker


@pytest.mark.parametrize("fetch", ["reliable", "basic"])
def test_those_in_line_run_one_after_the_other_in_the_order_in_which_they_were_made(
    client, settings, journal, fetch
):
    settings.COGWORKER_CONCURRENCY = 5
    settings.COGWORKER_FETCH = fetch
    with working():
        Brief.perform_async("a", 0)
        journal.wait_for("started 0")
        for number in range(1, 30):
            Brief.perform_async("a", number)
        wait_until(lambda: client.zcard("cogworker:schedule") == 29)
        Append.perform_async("free")
        journal.wait_for("free")
        journal.release("0")
        lines = journal.wait_for("finished 29")
        wait_until(lambda: not list(client.scan_iter("cogworker:unique:*")))
    lines.remove("free")
    assert lines == [f"{what} {each}" for each in range(30) for what in ("started", "finished")]
    assert client.zcard("cogworker:schedule") == 0


def test_one_that_was_told_and_loses_against_a_newcomer_is_told_again(client, settings, journal):
    settings.COGWORKER_CONCURRENCY = 5
    with working():
        for number in range(30, 60):
            Brief.perform_async("a", number)
        for number in range(30, 60):
            lines = journal.wait_for(f"finished {number}")
        wait_until(lambda: not list(client.scan_iter("cogworker:unique:*")))
    numbers = [line.split()[1] for line in lines]
    assert numbers[::2] == numbers[1::2], "no two of them ran side by side"


def test_releasing_the_lock_lets_the_first_in_line_start(client, settings, journal):
    settings.COGWORKER_CONCURRENCY = 3
    with working():
        for mark in "123":
            Alone.perform_async("a", mark)
            journal.wait_for("started a1")
        wait_until(lambda: client.zcard("cogworker:schedule") == 2)
        (lock,) = api.unique_locks()
        assert api.release_lock(lock.key)
        journal.wait_for("started a2")
        for mark in "123":
            journal.release(f"a{mark}")
        journal.wait_for("finished a3")


def test_one_that_is_cancelled_in_line_leaves_it(client, settings, journal):
    settings.COGWORKER_CONCURRENCY = 2
    with working():
        Alone.perform_async("a", "1")
        journal.wait_for("started a1")
        second, _ = (Alone.perform_async("a", mark) for mark in "23")
        wait_until(lambda: client.zcard("cogworker:schedule") == 2)
        assert api.find_job(str(second)).state == "scheduled"
        assert api.cancel(str(second)) == "removed"
        (line,) = client.scan_iter("cogworker:unique:waiters:*")
        assert client.zcard(line) == 1
        journal.release("a3")
        journal.release("a1")
        journal.wait_for("finished a3")
    assert journal.count("started a2") == 0


# -- step by step


def job(jid: str, **more: Any) -> dict[str, Any]:
    """A payload; the later in the alphabet, the younger."""
    fields = {"class": "x", "jid": jid, "args": [], "queue": "default", "created_at": ord(jid[0])}
    return {**fields, "unique": "while_executing", "unique_key": "k", **more}


def raw(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload).encode()


class Line:
    """The steps that the core does with jobs, without a worker."""

    def __init__(self, store: Store, unique: unique_feature.Unique) -> None:
        self.store = store
        self.unique = unique
        self.client: Any = store.client
        self._ticket = 1

    def fetched(self, payload: dict[str, Any]) -> int:
        """The ticket of a job that was pushed and fetched."""
        text, first = raw(payload), self._ticket
        assert self.store.push("lane", first, [Outgoing(payload["jid"], "default", text)]) == [None]
        request = ExchangeRequest(ME, first, 1, ("default",), (), ())
        (taken,) = self.store.exchange(request).jobs
        self._ticket += 1
        return taken.ticket

    def starts(self, payload: dict[str, Any]) -> int:
        ticket = self.fetched(payload)
        assert self.unique.admit(payload) is None
        return ticket

    def refused(self, payload: dict[str, Any]) -> tuple[int, Refused]:
        ticket, refused = self.fetched(payload), self.unique.admit(payload)
        assert refused is not None
        return ticket, refused

    def file(self, payload: dict[str, Any], ticket: int, refused: Refused) -> None:
        effects = (*refused.effects, *self.unique.settled(Run(payload, "waiting", delay=NEVER)))
        self.settle(ticket, "schedule", effects, raw(payload), NEVER)

    def stands(self, *jids: str) -> None:
        """These jobs came, found the lock taken, and stand in line."""
        for jid in jids:
            payload = job(jid)
            self.file(payload, *self.refused(payload))

    def settle(
        self,
        ticket: int,
        where: Disposition,
        effects: tuple[Effect, ...],
        payload: bytes | None = None,
        delay: float = 0.0,
    ) -> None:
        item = Settlement(ticket, where, payload, delay, queue="default", effects=effects)
        reply = self.store.exchange(ExchangeRequest(ME, self._ticket, 0, (), (), (item,)))
        assert list(reply.verdicts) == [1]
        assert not reply.errors

    def due(self) -> list[str]:
        return [json.loads(each)["jid"] for each in self.store.due(100).scheduled]

    def standing(self) -> list[str]:
        return [json.loads(each)["jid"] for each in self.client.zrange(LINE, 0, -1)]


@pytest.fixture
def line(store: Store, unique: unique_feature.Unique) -> Line:
    return Line(store, unique)


def _finished(line: Line, ticket: int, holder: dict[str, Any]) -> ExchangeReply:
    note = line.unique.note(Run(holder, "finished"))
    assert note is not None
    notes = line.unique.digest([note])
    return line.store.exchange(ExchangeRequest(ME, ticket + 9, 0, (), (ticket,), (), notes))


def _dead(line: Line, ticket: int, holder: dict[str, Any]) -> None:
    line.settle(ticket, "dead", line.unique.settled(Run(holder, "dead")), raw(holder))


def _retried(line: Line, ticket: int, holder: dict[str, Any]) -> None:
    line.settle(ticket, "retry", line.unique.settled(Run(holder, "retrying")), raw(holder), 500)


def _put_back(line: Line, ticket: int, holder: dict[str, Any]) -> None:
    line.settle(ticket, "front", line.unique.requeued(holder), raw(holder))


def _released(line: Line, ticket: int, holder: dict[str, Any]) -> None:
    assert api.release_lock("k")


ENDS = [_finished, _dead, _retried, _put_back, _released]


@pytest.mark.parametrize("end", ENDS)
def test_whatever_frees_the_lock_makes_the_first_in_line_due_and_wakes_a_worker(
    line: Line, end: Callable[..., None]
):
    holder = job("h")
    ticket = line.starts(holder)
    line.stands("c", "a", "b")
    assert (line.standing(), line.due()) == (["a", "b", "c"], [])
    assert line.client.llen("cogworker:schedule:tokens") == 0
    end(line, ticket, holder)
    assert (line.standing(), line.due()) == (["b", "c"], ["a"])
    assert line.client.llen("cogworker:schedule:tokens") == 1


@pytest.mark.parametrize("fate", ["front", "dead"])
def test_the_recovery_of_the_one_that_ran_does_the_same(client, unique, fate):
    line, holder = Line(get_store(), unique), job("h")
    ticket = line.starts(holder)
    line.stands("b", "a")
    effects = unique.recovered(holder, fate)
    held = Held(ticket, "default", raw(holder))
    orphan = Recovered(held, fate, raw(holder), "default", effects=effects)
    reply = line.store.recovering.recover(ME, host="", gone=True, threshold=1, orphans=[orphan])
    assert list(reply.verdicts) == [1]
    assert (line.standing(), line.due()) == (["b"], ["a"])


def test_a_lock_that_is_freed_between_the_refusal_and_the_step_into_the_line_is_not_missed(
    line: Line,
):
    holder, waiting = job("h"), job("a")
    ends = line.starts(holder)
    refusal = line.refused(waiting)
    _finished(line, ends, holder)
    line.file(waiting, *refusal)
    assert (line.due(), line.standing()) == (["a"], [])
    assert line.client.llen("cogworker:schedule:tokens") == 1


def test_who_frees_a_lock_that_another_has_by_now_wakes_nobody(line: Line):
    holder = job("h")
    ticket = line.starts(holder)
    line.client.delete(LOCK)
    line.starts(job("i"))
    line.stands("a")
    _dead(line, ticket, holder)
    assert (line.standing(), line.due()) == (["a"], [])


def test_one_that_other_hands_took_away_is_passed_over(line: Line):
    holder = job("h")
    ticket = line.starts(holder)
    line.stands("a", "b", "c")
    line.client.zrem("cogworker:schedule", raw(job("a")), raw(job("b")))
    _finished(line, ticket, holder)
    assert (line.standing(), line.due()) == ([], ["c"])
    assert line.client.zcard("cogworker:schedule") == 1, "nothing was written anew"


def test_one_that_is_due_already_keeps_its_place_among_those_that_are(line: Line):
    holder = job("h")
    ticket = line.starts(holder)
    line.stands("a", "b")
    line.client.zadd("cogworker:schedule", {raw(job("a")): 1})
    _finished(line, ticket, holder)
    assert (line.standing(), line.due()) == (["b"], ["a"])
    assert line.client.zscore("cogworker:schedule", raw(job("a"))) == 1


def test_one_that_looks_by_itself_or_is_deleted_leaves_the_line(line: Line):
    line.starts(job("h"))
    line.stands("a", "b", "c")
    keys, unique = line.store.keys, line.unique
    effects = unique.removed(job("a"))
    assert line.store.remove(keys.schedule, [(raw(job("a")), effects)]) == [1]
    assert line.standing() == ["b", "c"]
    line.client.zadd(keys.schedule, {raw(job("b")): 1})
    graduate(line.store)
    assert line.standing() == ["c"]


def graduate(store: Store) -> None:
    from django_cogworker.worker.outage import Outage
    from django_cogworker.worker.scheduler import Scheduler

    Scheduler(store=store, outage=Outage("redis"), turned=lambda: None).move_due()


def test_one_that_is_deleted_when_it_was_its_turn_passes_it_on(line: Line):
    holder = job("h")
    ticket = line.starts(holder)
    line.stands("a", "b")
    _finished(line, ticket, holder)
    assert line.due() == ["a"]
    effects = line.unique.removed(job("a"))
    assert line.store.remove(line.store.keys.schedule, [(raw(job("a")), effects)]) == [1]
    assert line.due() == ["b"]


def test_the_line_is_bounded_and_ends_by_itself(line: Line, monkeypatch):
    monkeypatch.setattr(locks, "LINE", 2)
    line.starts(job("h"))
    line.stands("c", "b", "a")
    assert line.standing() == ["a", "b"]
    threshold = get_config().orphan_threshold
    assert threshold < line.client.ttl(LINE) <= threshold + locks.MARGIN


def test_the_place_in_line_is_the_moment_since_which_the_job_could_have_run(line: Line):
    line.starts(job("h"))
    for payload in (job("a", at=200), job("b", created_at="?"), job("c")):
        line.file(payload, *line.refused(payload))
    assert line.standing() == ["c", "a", "b"]
    assert line.client.zscore(LINE, raw(job("a", at=200))) == 200
    assert abs(line.client.zscore(LINE, raw(job("b", created_at="?"))) - time.time()) < 60


def test_where_the_line_is_of_the_wrong_type_the_job_still_waits(client, unique):
    line, holder = Line(get_store(), unique), job("h")
    ticket = line.starts(holder)
    client.set(LINE, "text")
    asked, refused = line.refused(job("a"))
    settled = Settlement(asked, "schedule", raw(job("a")), NEVER, effects=refused.effects)
    reply = line.store.exchange(ExchangeRequest(ME, asked + 1, 0, (), (), (settled,)))
    assert list(reply.verdicts) == [1]
    assert "WRONGTYPE" in reply.errors[0]
    assert "WRONGTYPE" in _finished(line, ticket, holder).errors[0]
    assert client.zcard("cogworker:schedule") == 1


def test_a_job_that_waits_looks_by_itself_too(client, unique, monkeypatch):
    """For locks that end by their TTL: nobody tells of that."""
    monkeypatch.setattr(unique_feature, "FIRST_LOOK", 5.0)
    monkeypatch.setattr(unique_feature, "LAST_LOOK", 15.0)
    client.set(Keys("cogworker:").of("unique", "lock", "k"), "somebody")
    waits = [refused.delay for refused in map(unique.admit, [job("a")] * 50) if refused]
    assert len(set(waits)) == 50
    assert all(each is not None and 5 <= each <= 15 for each in waits)
