"""What features may have done in the core's own steps: guards, effects, notes, the bulletin."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_cogworker.client import push as push_raw
from django_cogworker.features import registry
from django_cogworker.features.base import Feature, Refused, Run
from django_cogworker.jobs.context import JobContext
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import Effect, ExchangeRequest, Guard, Move, Outgoing
from django_cogworker.worker.bulletin import Bulletin
from tests.project.jobs import Append, FailOnce
from tests.redis.test_basic_mode import working as working_launcher
from tests.support.waiting import wait_until

ME = "host:1:aaaaaaaaaaaa"


@pytest.fixture
def client(redis_client: Any) -> Any:
    return redis_client


def outgoing(jid: str, **more: Any) -> Outgoing:
    return Outgoing(jid, "default", json.dumps({"jid": jid}).encode(), **more)


def push(store: Store, number: int, *jobs: Outgoing) -> list[Any]:
    return [None if each is None else each.reason for each in store.push("lane", number, jobs)]


# -- guards


def test_a_claim_that_another_has_refuses_and_names_the_holder(store, client):
    guard = Guard("lock", "a", 60)
    assert push(store, 1, outgoing("a", guards=(guard,))) == [None]
    assert push(store, 2, outgoing("b", guards=(Guard("lock", "b", 60),))) == ["duplicate a"]
    (refusal,) = store.push("lane", 3, [outgoing("b", guards=(Guard("lock", "b", 60),))])
    assert refusal is not None
    assert refusal.is_duplicate
    assert refusal.holder == "a"
    assert push(store, 4, outgoing("a", guards=(guard,))) == [None], (
        "its own claim stands in nobody's way"
    )
    assert client.llen(store.keys.queue("default").jobs) == 2


def test_a_guard_that_takes_is_never_refused(store, client):
    push(store, 1, outgoing("a", guards=(Guard("lock", "a", 60),)))
    assert push(store, 2, outgoing("b", guards=(Guard("lock", "b", 60, "take"),))) == [None]
    assert client.get("lock") == b"b"
    assert 0 < client.ttl("lock") <= 60


def test_a_guard_that_rises_takes_each_number_once_and_never_a_lower_one(store, client):
    def slot(number: int, at: int) -> list[Any]:
        return push(
            store, number, outgoing(f"j{at}", guards=(Guard("last", str(at), 60, "rises"),))
        )

    assert slot(1, 100) == [None]
    assert slot(2, 100) == ["duplicate 100"]
    assert slot(3, 90) == ["duplicate 100"]
    assert slot(4, 110) == [None]
    assert client.get("last") == b"110"


def test_all_guards_are_claimed_or_none(redis_url, client):
    store = get_store()
    client.set("second", "other")
    client.set("first", "old", ex=500)
    guards = (Guard("first", "me", 60, "take"), Guard("second", "me", 60))
    assert push(store, 1, outgoing("a", guards=guards)) == ["duplicate other"]
    assert client.get("first") == b"old"
    assert 400 < client.ttl("first") <= 500


def test_guards_are_put_back_where_the_job_cannot_be_written(redis_url, client):
    store = get_store()
    client.set(store.keys.queue("default").priority, "wrong")
    client.set("last", "90", ex=500)
    job = outgoing("a", priority=3, guards=(Guard("last", "100", 60, "rises"),))
    assert "WRONGTYPE" in push(store, 1, job)[0]
    assert client.get("last") == b"90"


# -- effects


def test_each_effect_does_what_it_says(store, client):
    now = time.time()
    client.set("mine", "me", ex=5)
    client.set("theirs", "they", ex=5)
    for name in ("mine-too", "theirs-too"):
        client.set(name, name.partition("-")[0], ex=5)
    client.hset("gone", mapping={"a": 1, "b": 2, "c": 3})
    client.zadd("runs", {"old": now - 100, "a": now - 3, "b": now - 2, "c": now - 1})
    store.apply(
        [
            Effect("hset", "hash", ("a", "1", "b", "2")),
            Effect("hincrby", "hash", ("n", 3)),
            Effect("hdel", "gone", ("a", "b")),
            Effect("record", "runs", (f"{now}", "d", f"{now - 50}", 3)),
            Effect("hold", "mine", ("me", 100)),
            Effect("hold", "theirs", ("me", 100)),
            Effect("hold", "new", ("me", 100)),
            Effect("delete_if_owner", "mine-too", ("mine",)),
            Effect("delete_if_owner", "theirs-too", ("me",)),
        ]
    )
    assert client.hgetall("hash") == {b"a": b"1", b"b": b"2", b"n": b"3"}
    assert client.hgetall("gone") == {b"c": b"3"}
    assert client.zrange("runs", 0, -1) == [b"b", b"c", b"d"]
    assert [client.get(each) for each in ("mine", "theirs", "new")] == [b"me", b"they", b"me"]
    assert client.ttl("mine") > 90
    assert client.ttl("theirs") <= 5
    assert (client.exists("mine-too"), client.exists("theirs-too")) == (0, 1)


def test_effects_of_a_script_do_the_same(redis_url, client):
    store, now = get_store(), time.time()
    client.set("theirs", "they", ex=5)
    effects = (
        Effect("hset", "hash", ("a", "1", "b", "2")),
        Effect("record", "runs", (f"{now - 60}", "old", f"{now - 50}", 3)),
        Effect("record", "runs", (f"{now}", "d", f"{now - 50}", 3)),
        Effect("hold", "theirs", ("me", 100)),
        Effect("hold", "new", ("me", 100)),
        Effect("hdel", "hash", ("a",)),
    )
    assert push(store, 1, outgoing("a", effects=effects)) == [None]
    assert client.hgetall("hash") == {b"b": b"2"}
    assert client.zrange("runs", 0, -1) == [b"d"]
    assert (client.get("theirs"), client.get("new")) == (b"they", b"me")


def test_effects_come_with_the_move_of_a_due_job_and_with_its_removal(store, client):
    effect = (Effect("hincrby", "seen", ("n", 1)),)
    assert push(store, 1, outgoing("a", at=1.0), outgoing("b", at=1.0)) == [None, None]
    a, b = (json.dumps({"jid": each}).encode() for each in "ab")
    source = store.keys.schedule
    moves = [
        Move(a, a, "default", effects=effect),
        Move(b"gone", b"gone", "default", effects=effect),
    ]
    assert store.graduate(source, moves) == [1, 0]
    assert client.hget("seen", "n") == b"1"
    assert store.remove(source, [(b, effect), (a, effect)]) == [1, 0]
    assert store.remove(store.keys.queue("default").jobs, [(a, effect)]) == [1]
    assert client.hget("seen", "n") == b"3"
    assert client.exists(source, store.keys.queue("default").jobs) == 0


def test_notes_are_carried_out_once_though_the_call_is_repeated(redis_url, client):
    store = get_store()
    push(store, 1, outgoing("a"), outgoing("b"))
    store.exchange(ExchangeRequest(ME, 1, 2, ("default",), (), ()))
    notes = (Effect("hincrby", "seen", ("n", 2)),)
    for _ in range(2):
        store.exchange(ExchangeRequest(ME, 3, 0, (), (1, 2), (), notes))
    assert client.hget("seen", "n") == b"2"


# -- a feature in a worker


class Watching(Feature):
    """Takes part in everything and writes down what it hears."""

    name = "watching"

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.refuse: Refused | None = None
        self.digested: list[int] = []

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        return self.refuse if payload["args"][0] == "unwanted" else None

    def note(self, run: Run) -> Any:
        return run.payload["args"][0], run.result, run.seconds >= 0, run.began_at > 0

    def digest(self, notes: Any) -> tuple[Effect, ...]:
        self.digested.append(len(notes))
        return tuple(Effect("hincrby", "noted", (each[0], 1)) for each in notes)

    def settled(self, run: Run) -> tuple[Effect, ...]:
        if run.outcome == "finished":
            return ()
        self.heard.append(f"{run.payload['args'][0]} {run.outcome}")
        return (Effect("hset", "ends", (run.payload["args"][0], run.outcome)),)

    def bulletin(self) -> None:
        self.heard.append("bulletin")

    def attached(self, worker: Any) -> None:
        self.heard.append("attached" if worker.identity else "?")


@pytest.fixture
def watching(redis_url: str) -> Iterator[Watching]:
    feature = Watching()
    registry.add(feature)
    yield feature
    registry.remove(feature)


@pytest.fixture
def working(redis_url: str, journal: Any, settings: Any) -> Callable[..., Any]:
    settings.COGWORKER_CONCURRENCY = 2
    return working_launcher


def test_a_feature_takes_part_in_the_life_of_a_job(watching, working, journal, client):
    keys = get_store().keys
    with working():
        Append.perform_async("good")
        FailOnce.perform_async("bad")
        watching.refuse = Refused("unwanted", "nobody wants it")
        Append.perform_async("unwanted")
        wait_until(lambda: client.hlen("ends") == 2 and client.hget("noted", "good"))
        assert client.hgetall("ends") == {b"bad": b"dead", b"unwanted": b"unwanted"}
        assert client.hgetall("noted") == {b"good": b"1"}
        watching.refuse = Refused("waiting", "not now", 30.0)
        Append.perform_async("unwanted")
        wait_until(lambda: client.zcard(keys.schedule) == 1)
    assert watching.heard[:2] == ["bulletin", "attached"]
    assert "unwanted waiting" in watching.heard
    assert journal.count("unwanted") == 0
    assert client.get(keys.processed) == b"1"


class Concerned(Feature):
    """Concerns jobs with a field of its own, and writes down which it was asked about."""

    name = "concerned"
    concerns = frozenset({"colour"})

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.server_middleware = (self.around,)  # type: ignore[misc]

    def hear(self, what: str, payload: dict[str, Any]) -> None:
        self.heard.append(f"{what} {payload['args'][0]}")

    def around(self, call_next: Callable[..., Any]) -> Callable[..., Any]:
        def surrounded(job: Any, payload: dict[str, Any]) -> Any:
            self.hear("middleware", payload)
            return call_next(job, payload)

        return surrounded

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        self.hear("admit", payload)
        return None

    def watch(self, context: JobContext) -> Callable[[], None]:
        self.hear("begins", context.payload)
        return lambda: self.hear("is over", context.payload)

    def settled(self, run: Run) -> tuple[Effect, ...]:
        self.hear(run.outcome, run.payload)
        return ()

    def note(self, run: Run) -> Any:
        self.hear("note", run.payload)
        return run.payload["args"][0]

    def digest(self, notes: Any) -> tuple[Effect, ...]:
        return tuple(Effect("hincrby", "noted of some", (each, 1)) for each in notes)


def test_a_feature_is_asked_about_those_jobs_alone_that_concern_it(
    watching, working, journal, client
):
    feature = Concerned()
    registry.add(feature)
    try:
        with working():
            for name, more in (("plain", {}), ("red", {"colour": "red"}), ("plain too", {})):
                push_raw({"class": Append.job_name, "args": [name], **more})
                journal.wait_for(name)
            wait_until(lambda: client.hlen("noted") == 3)
    finally:
        registry.remove(feature)
    steps = ("admit", "middleware", "begins", "is over", "finished", "note")
    assert feature.heard == [f"{each} red" for each in steps]
    assert client.hgetall("noted of some") == {b"red": b"1"}
    assert client.hgetall("noted") == dict.fromkeys((b"plain", b"red", b"plain too"), b"1")


def test_a_bulletin_is_read_before_a_job_that_came_after_it_starts(watching, working, journal):
    with working():
        Append.perform_async("one")
        journal.wait_for("one")
        get_store().post_bulletin()
        Append.perform_async("two")
        journal.wait_for("two")
        assert watching.heard.count("bulletin") == 2


def test_a_bulletin_that_cannot_be_read_is_read_again(watching, caplog):
    calls = []

    def fail_once() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("oh")

    watching.bulletin = fail_once
    bulletin = Bulletin()
    for number in (0, 0, 0, 1, 1):
        bulletin.came(number)
    assert len(calls) == 3
    assert "could not read" in caplog.text
