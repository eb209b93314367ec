"""Servers that forbid scripts or are too old for ours: the same worker in basic mode."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from django_cogworker.conf import get_config
from django_cogworker.store.errors import refuses_scripts
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import ExchangeReply, ExchangeRequest, Outgoing, Settlement
from django_cogworker.worker.launcher import Launcher
from tests.project.jobs import Append, FailOnce, FailTimes
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

ME = "host:1:aaaaaaaaaaaa"
WARNING = "Working in basic mode"


@contextmanager
def working(concurrency: int = 2) -> Iterator[Launcher]:
    """A whole worker in a thread of this process."""
    launcher = Launcher(get_store(), get_config(), burst=False)
    thread = threading.Thread(target=launcher.run)
    thread.start()
    try:
        yield launcher
    finally:
        launcher.stop()
        thread.join(15)
    assert not thread.is_alive()


@pytest.fixture
def forbidding(make_redis_server, settings) -> RedisServer:
    """A server whose ACL forbids scripts."""
    server: RedisServer = make_redis_server()
    server.client().execute_command("ACL", "SETUSER", "default", "-@scripting")
    settings.COGWORKER_REDIS = server.url
    settings.COGWORKER_CONCURRENCY = 2
    return server


@pytest.fixture
def renaming(make_redis_server, settings) -> RedisServer:
    """A server that does not know the commands."""
    server: RedisServer = make_redis_server(
        rename_command='EVALSHA ""\nrename-command EVAL ""\nrename-command SCRIPT ""'
    )
    settings.COGWORKER_REDIS = server.url
    settings.COGWORKER_CONCURRENCY = 2
    return server


@pytest.mark.parametrize("kind", ["forbidding", "renaming"])
def test_a_server_without_scripts_is_told_once_and_jobs_run(request, kind, journal, caplog):
    """F56"""
    server: RedisServer = request.getfixturevalue(kind)
    caplog.set_level(logging.INFO)
    client: Any = server.client()
    with working() as launcher:
        for number in range(20):
            Append.perform_async(f"j{number}")
        Append.set(priority=3).perform_async("urgent")
        Append.perform_in(0.3, "later")
        FailTimes.perform_async("retried", 2)
        FailOnce.perform_async("dies")
        for line in ("j19", "urgent", "later", "retried", "failed dies"):
            journal.wait_for(line)
        wait_until(lambda: client.zcard("cogworker:dead") == 1)
        wait_until(lambda: client.get("cogworker:stats:processed") == b"23")
        assert client.get("cogworker:stats:failed") == b"3"
        assert client.hget(f"cogworker:process:{launcher.identity}", "busy") is not None
    assert len([each for each in caplog.records if WARNING in each.message]) == 1
    assert client.exists(f"cogworker:process:{launcher.identity}") == 0
    assert "basic mode" in caplog.text
    assert not [each for each in caplog.records if "crashed" in each.message]


def test_scripts_forbidden_while_the_worker_runs(make_redis_server, settings, journal, caplog):
    """F56"""
    server: RedisServer = make_redis_server()
    settings.COGWORKER_REDIS = server.url
    with working():
        Append.perform_async("a")
        journal.wait_for("a")
        assert get_store().reliable
        server.client().execute_command("ACL", "SETUSER", "default", "-@scripting")
        Append.perform_async("b")
        journal.wait_for("b")
        assert not get_store().reliable
    assert len([each for each in caplog.records if WARNING in each.message]) == 1


def test_many_threads_meet_the_refusal_at_once_and_warn_once(forbidding, caplog):
    """F56"""
    store = get_store()
    barrier = threading.Barrier(8)

    def push(number: int) -> None:
        barrier.wait()
        store.push(f"lane{number}", 1, [Outgoing("a", "default", b"{}")])

    threads = [threading.Thread(target=push, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert forbidding.client().llen("cogworker:queue:default") == 8
    assert len([each for each in caplog.records if WARNING in each.message]) == 1


def test_basic_by_setting_needs_no_warning(redis_url, settings, journal, caplog):
    settings.COGWORKER_FETCH = "basic"
    with working():
        Append.perform_async("a")
        journal.wait_for("a")
    assert WARNING not in caplog.text


@pytest.mark.parametrize(
    ("version", "reliable"),
    [
        ("6.2.0", True),
        ("7.0.15", True),
        ("9.1.2", True),
        ("6.0.16", False),
        ("5.0", False),
        ("x", True),
    ],
)
def test_the_version_of_the_server_decides(redis_url, monkeypatch, caplog, version, reliable):
    """F56"""
    store = get_store()
    monkeypatch.setattr(store.client, "info", lambda section: {"redis_version": version})
    store.choose_mode()
    store.choose_mode()
    assert store.reliable is reliable
    warnings = [each for each in caplog.records if WARNING in each.message]
    assert len(warnings) == (0 if reliable else 1)


def test_a_server_that_is_away_gives_no_answer_and_none_is_remembered(make_redis_server, settings):
    """F57, F58"""
    server: RedisServer = make_redis_server()
    settings.COGWORKER_REDIS = server.url
    server.stop()
    store = get_store()  # no call yet, so no error
    with pytest.raises(redis.ConnectionError):
        store.choose_mode()
    assert store.reliable
    server.start()
    store.choose_mode()
    assert store.reliable


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("ERR unknown command 'EVALSHA', with args beginning with: ", True),
        ("ERR unknown command `EVALSHA`, with args beginning with: ", True),
        ("NOPERM this user has no permissions to run the 'evalsha' command", True),
        ("NOPERM User default has no permissions to run the 'eval' command", True),
        (
            "NOPERM ACL failure in script: User x has no permissions to run the 'zadd' command",
            False,
        ),
        ("NOPERM No permissions to access a key script: 1f, on @user_script:12.", False),
        ("ERR unknown command 'BLPOP'", False),
        ("WRONGTYPE Operation against a key script: 1f", False),
    ],
)
def test_only_a_refusal_of_scripts_themselves_counts(text, refuses):
    kind = redis.exceptions.NoPermissionError if "NOPERM" in text else redis.ResponseError
    assert refuses_scripts(kind(text)) is refuses


# -- the verbs


@pytest.fixture
def basic(redis_url, settings) -> Store:
    settings.COGWORKER_FETCH = "basic"
    store = get_store()
    assert not store.reliable
    return store


def payload(name: str) -> bytes:
    return json.dumps({"class": "x", "jid": name}).encode()


def push(store: Store, *names: str, queue: str = "default", priority: int = 0) -> None:
    jobs = [Outgoing(each, queue, payload(each), priority) for each in names]
    assert store.push("lane", 1, jobs) == [None] * len(jobs)


def exchange(
    store: Store, wanted: int = 0, queues: tuple[str, ...] = ("default",), *settled: Settlement
) -> ExchangeReply:
    return store.exchange(ExchangeRequest(ME, 1, wanted, queues, (), settled))


def fetched(reply: ExchangeReply) -> list[str]:
    return [json.loads(each.payload)["jid"] for each in reply.jobs]


def test_basic_fetch_keeps_order_and_priorities(basic):
    push(basic, "n1", "n2")
    push(basic, "l1", priority=-1)
    push(basic, "h1", priority=1)
    push(basic, "top", priority=100)
    assert fetched(exchange(basic, 2)) == ["top", "h1"]
    assert fetched(exchange(basic, 9)) == ["n1", "n2", "l1"]
    assert fetched(exchange(basic, 9)) == []


def test_basic_fetch_leaves_paused_queues_and_gives_back_to_the_front(basic):
    push(basic, "a")
    push(basic, "b", queue="low")
    basic.pause("default")
    assert fetched(exchange(basic, 5, ("default", "low"))) == ["b"]
    back = Settlement(1, "front", payload("b"), queue="low")
    push(basic, "c", queue="low")
    assert list(exchange(basic, 0, (), back).verdicts) == [1]
    assert basic.resume("default") is True
    assert fetched(exchange(basic, 5, ("low", "default"))) == ["b", "c", "a"]


def test_basic_tokens_wake_one_and_are_put_back(basic):
    push(basic, "a", "b")
    tokens = basic.keys.queue("default").tokens
    assert basic.wait_for_token(["default"])
    exchange(basic, 1)
    assert basic.client.llen(tokens) == 1
    assert basic.wait_for_token(["default"])
    exchange(basic, 0)
    assert basic.client.llen(tokens) == 1
    assert basic.wait_for_token(["default"])
    exchange(basic, 1)
    assert basic.client.llen(tokens) == 0


@pytest.mark.parametrize("disposition", ["retry", "dead", "front", "schedule"])
def test_basic_settlement_of_one_wrong_key_holds_up_no_other(basic, disposition):
    keys = basic.keys
    wrong = {
        "retry": keys.retry,
        "dead": keys.dead,
        "schedule": keys.schedule,
        "front": keys.queue("default").jobs,
    }[disposition]
    basic.client.set(wrong, "text")
    items = [
        Settlement(at, kind, payload(kind), queue="default")  # type: ignore[arg-type]
        for at, kind in enumerate(("retry", "dead", "front", "schedule"), 1)
    ]
    verdicts = exchange(basic, 0, (), *items).verdicts
    for item, verdict in zip(items, verdicts, strict=True):
        if item.disposition == disposition:
            assert "WRONGTYPE" in str(verdict)
        else:
            assert verdict == 1


def test_what_was_taken_is_handed_out_though_the_next_queue_fails(basic, redis_url, monkeypatch):
    """Popped jobs exist in memory alone: no error of a later command may throw them away."""
    push(basic, "a")
    push(basic, "b", queue="low")
    push(basic, "h", priority=5)
    basic.client.set(basic.keys.queue("bad").priority, "text")
    reply = exchange(basic, 9, ("default", "bad", "low"))
    assert fetched(reply) == ["h", "a", "b"]
    assert len(reply.errors) == 1

    push(basic, "c")
    push(basic, "d", queue="low")
    plain: Any = basic._plain
    real: Callable[..., Any] = plain._client.zrange

    def lose(name: str, *args: Any, **options: Any) -> Any:
        if name == basic.keys.queue("low").priority:
            raise redis.ConnectionError("the connection is gone")
        return real(name, *args, **options)

    monkeypatch.setattr(plain._client, "zrange", lose)
    assert fetched(exchange(basic, 9, ("default", "low"))) == ["c"]
    monkeypatch.undo()
    assert fetched(exchange(basic, 9, ("default", "low"))) == ["d"]


def test_basic_graduation_moves_each_due_job_once(basic):
    from django_cogworker.worker.outage import Outage
    from django_cogworker.worker.scheduler import Scheduler

    now = time.time()
    names = [f"j{number}" for number in range(200)]
    members = {
        json.dumps({"class": "x", "jid": each, "queue": "default"}): now - 1 for each in names
    }
    basic.client.zadd(basic.keys.schedule, members)
    basic.client.zadd(basic.keys.retry, {"junk": now - 1})

    def move() -> None:
        scheduler = Scheduler(store=basic, outage=Outage("redis"), turned=lambda: None)
        while basic.client.exists(basic.keys.schedule, basic.keys.retry):
            scheduler.move_due()

    threads = [threading.Thread(target=move) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(fetched(exchange(basic, 500))) == sorted(names)
    assert basic.client.zcard(basic.keys.dead) == 1
