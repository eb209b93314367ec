"""A push reaches Redis once, whatever happens to its requests and replies, and whoever pushes beside it."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.test import override_settings

from django_cogworker import Job
from django_cogworker.exceptions import PushError
from tests.support.waiting import wait_until

QUEUE = "cogworker:queue:default"
PUSHES = b"EVALSHA"


class Plain(Job):
    def perform(self, *args: Any) -> None: ...


@pytest.fixture
def proxy(make_proxy, redis_url):
    """A proxy between the client and the shared server; scripts are known there already."""
    with override_settings(COGWORKER_REDIS=redis_url):
        Plain.perform_async("warm up")
    proxy = make_proxy(redis_url)
    with override_settings(COGWORKER_REDIS=proxy.url):
        yield proxy


@pytest.fixture
def jobs(proxy, redis_client: redis.Redis) -> Callable[[], list[Any]]:
    """The first arguments of all jobs on the queue, without the one that warmed up."""

    def get() -> list[Any]:
        every: list[Any] = redis_client.lrange(QUEUE, 0, -1)
        return [json.loads(each)["args"][0] for each in reversed(every)][1:]

    return get


@pytest.fixture
def quick_timeouts(monkeypatch):
    """Replies count as lost after a moment instead of seconds."""
    monkeypatch.setattr("django_cogworker.store.connection.CALL_TIMEOUT", 0.1)
    monkeypatch.setattr("django_cogworker.store.store.make_client", _impatient_client)
    monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 0.1)


def _impatient_client(*args: Any, **kwargs: Any) -> redis.Redis:
    from django_cogworker.store.connection import make_client

    return make_client(*args, **{**kwargs, "call_timeout": 0.1})


class TestOnePush:
    @pytest.mark.parametrize(
        "enqueue",
        [
            lambda: Plain.perform_async(1),
            lambda: Plain.perform_bulk([(1,)]),
            lambda: asyncio.run(_push(1)),
        ],
        ids=["async", "bulk", "aperform"],
    )
    def test_a_lost_reply_is_asked_for_again_and_the_job_is_there_once(self, proxy, jobs, enqueue):
        rule = proxy.lose_reply(PUSHES)
        assert enqueue()
        assert rule.hits == 1
        assert jobs() == [1]

    def test_a_lost_request_is_sent_again(self, proxy, jobs):
        rule = proxy.lose_request(PUSHES)
        assert Plain.perform_async(1)
        assert rule.hits == 1
        assert jobs() == [1]

    def test_many_replies_in_a_row(self, proxy, jobs):
        rule = proxy.lose_reply(PUSHES, times=5)
        assert Plain.perform_async(1)
        assert rule.hits == 5
        assert jobs() == [1]

    def test_for_scheduled_and_ranked_jobs_too(self, proxy, redis_client):
        for enqueue, key in (
            (lambda: Plain.perform_in(60, 1), "cogworker:schedule"),
            (lambda: Plain.set(priority=5).perform_async(1), f"{QUEUE}:priority"),
        ):
            rule = proxy.lose_reply(PUSHES, times=2)
            assert enqueue()
            assert rule.hits == 2
            assert redis_client.zcard(key) == 1

    def test_a_bulk_push_keeps_order_and_number(self, proxy, jobs):
        rule = proxy.lose_reply(PUSHES, nth=2, times=2)
        jids = Plain.perform_bulk([(n,) for n in range(3500)])
        assert rule.hits == 2
        assert jobs() == list(range(3500))
        assert len(set(jids)) == 3500

    def test_refusals_are_the_same_when_asked_for_again(self, proxy, redis_client):
        """The result is kept with the number, not made anew."""
        redis_client.set("cogworker:queue:bad", "not ours")
        proxy.lose_reply(PUSHES)
        with pytest.raises(PushError, match="WRONGTYPE") as caught:
            Plain.set(queue="bad").perform_async(1)
        assert len(caught.value.refused) == 1

    def test_a_cut_connection_is_replaced(self, proxy, jobs):
        for number in range(5):
            Plain.perform_async(number)
            proxy.cut()
        assert jobs() == list(range(5))

    def test_a_short_outage_is_waited_out(self, proxy, jobs):
        proxy.down()
        thread = threading.Thread(target=Plain.perform_async, args=(1,))
        before = proxy.accepted
        thread.start()
        wait_until(lambda: proxy.accepted >= before + 2)
        proxy.up()
        thread.join(10)
        assert not thread.is_alive()
        assert jobs() == [1]

    def test_after_an_outage_that_is_too_long_the_error_says_that_it_may_be_there(
        self, proxy, jobs, monkeypatch
    ):
        monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 0.2)
        proxy.lose_reply(PUSHES, times=None)
        with pytest.raises(PushError, match="may have taken it all the same") as caught:
            Plain.perform_async(1)
        assert caught.value.ambiguous
        proxy.clear()
        assert Plain.perform_async(2)
        assert jobs() == [1, 2]


@pytest.mark.usefixtures("quick_timeouts")
class TestHangingReplies:
    def test_a_reply_that_never_comes_is_asked_for_once_more(self, proxy, jobs):
        """Even where waiting for it took all the time that a push has."""
        rule = proxy.lose_reply(PUSHES, then="hang")
        assert Plain.perform_async(1)
        assert rule.hits == 1
        assert jobs() == [1]

    def test_a_request_that_hangs_is_sent_once_more(self, proxy, jobs):
        rule = proxy.lose_request(PUSHES, then="hang")
        assert Plain.perform_async(1)
        assert rule.hits == 1
        assert jobs() == [1]

    def test_a_reply_that_comes_late_is_not_taken_for_the_next_one(self, proxy, jobs):
        proxy.delay_reply(0.15, PUSHES, times=1)
        jids = [Plain.perform_async(number) for number in range(5)]
        assert len(set(jids)) == 5
        assert jobs() == list(range(5))

    def test_after_a_time_out_no_other_connection_of_the_pool_is_trusted(
        self, proxy, jobs, redis_client
    ):
        """After a fail-over all are half-open; each would cost a time-out of its own later."""

        def connections() -> int:
            return sum(each["name"] == "cogworker" for each in redis_client.client_list())

        slow = proxy.delay_reply(0.05, PUSHES)
        threads = [threading.Thread(target=Plain.perform_async, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        proxy.remove(slow)
        assert connections() >= 4
        proxy.lose_request(PUSHES, then="hang")
        assert Plain.perform_async(8)
        wait_until(lambda: connections() <= 2)
        assert sorted(jobs()) == list(range(9))

    def test_a_frozen_server_is_a_clear_error_and_afterwards_all_is_well(self, proxy, jobs):
        proxy.freeze()
        with pytest.raises(PushError, match="Timeout") as caught:
            Plain.perform_async(1)
        assert caught.value.refused
        proxy.thaw()
        wait_until(lambda: Plain.perform_async(2) is not None)
        found = jobs()
        assert found.count(2) == 1
        assert found.count(1) <= 1


async def _push(*numbers: Any) -> list[str | None]:
    return list(await asyncio.gather(*(Plain.aperform_async(number) for number in numbers)))


def exactly_once(found: list[Any], wanted: int) -> None:
    assert len(found) == wanted
    assert sorted(found) == list(range(wanted))


class TestManyPushes:
    def test_two_thousand_from_coroutines_of_one_thread(self, proxy, jobs):
        """With replies and requests lost on the way."""
        rules = _lose_some(proxy)
        jids = asyncio.run(_push(*range(2000)))
        assert len(set(jids)) == 2000
        assert all(rule.hits for rule in rules)
        exactly_once(jobs(), 2000)

    def test_fifty_threads_over_a_small_pool(self, proxy, jobs, redis_client):
        """AR-4: the pool has 15 connections, and threads wait for one."""
        rules = _lose_some(proxy)
        errors: list[BaseException] = []

        def push_some(first: int) -> None:
            try:
                for number in range(first, first + 40):
                    Plain.perform_async(number)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=push_some, args=(n * 40,)) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert all(rule.hits for rule in rules)
        exactly_once(jobs(), 2000)
        clients = [each for each in redis_client.client_list() if each["name"] == "cogworker"]
        assert len(clients) <= 15 + 2  # and two that the server has not seen closing yet

    def test_fifty_bulk_pushes_at_once(self, proxy, jobs):
        _lose_some(proxy)
        threads = [
            threading.Thread(target=Plain.perform_bulk, args=([(n * 40 + i,) for i in range(40)],))
            for n in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        exactly_once(jobs(), 2000)


def _lose_some(proxy: Any) -> list[Any]:
    """Lose each 50th reply and each 81st request of pushes, again and again."""

    def each(period: int) -> Callable[[bytes], bool]:
        counter = itertools.count(1)
        return lambda command: PUSHES in command and next(counter) % period == period - 1

    return [proxy.lose_reply(each(50), times=None), proxy.lose_request(each(81), times=None)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not here: this platform cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
class TestFork:
    """A fork copies idle lanes and open connections into the child."""

    def test_parent_and_child_push_at_once(self, proxy, jobs):
        _lose_some(proxy)
        for number in range(20):
            Plain.perform_async(number)
        children = [_fork(_push_range, 20 + n * 50, 50) for n in range(3)]
        _push_range(170, 50)
        for child in children:
            _join(child)
        exactly_once(jobs(), 220)

    def test_a_fork_while_other_threads_push(self, proxy, jobs):
        _lose_some(proxy)
        threads = [threading.Thread(target=_push_range, args=(n * 60, 60)) for n in range(6)]
        for thread in threads:
            thread.start()
        children = []
        for number in range(4):
            wait_until(functools.partial(lambda least: len(jobs()) > least, number * 30))
            children.append(_fork(_push_range, 360 + number * 20, 20))
        for thread in threads:
            thread.join(60)
        for child in children:
            _join(child)
        exactly_once(jobs(), 440)

    def test_a_grandchild_too(self, proxy, jobs):
        Plain.perform_async(0)

        def in_child() -> None:
            Plain.perform_async(1)
            grandchild = _fork(_push_range, 2, 20)
            _push_range(22, 20)
            _join(grandchild)

        child = _fork(in_child)
        _push_range(42, 20)
        _join(child)
        exactly_once(jobs(), 62)

    def test_a_lane_that_the_parent_left_idle_is_not_used_by_the_child(self, proxy, jobs):
        """Same lane and same number would be taken for a repeat: the child's job would vanish."""
        Plain.perform_async(0)
        for number in range(1, 4):
            child = _fork(_push_range, number * 2, 1)
            _push_range(number * 2 - 1, 1)
            _join(child)
        exactly_once(jobs(), 7)

    @pytest.mark.django_db(transaction=True)
    def test_locks_held_by_other_threads_at_the_fork_stop_no_push_of_the_child(self, proxy, jobs):
        from django.db import transaction

        from django_cogworker.client import commit

        with commit._waiting_lock:

            def in_child() -> None:
                with transaction.atomic():
                    Plain.perform_async(0)

            child = _fork(in_child)
            _join(child)
        exactly_once(jobs(), 1)


def _push_range(first: int, count: int) -> None:
    for number in range(first, first + count):
        Plain.perform_async(number)


def _fork(function: Callable[..., Any], *args: Any) -> int:
    """Run `function` in a child that ends with it, whatever pytest would do then."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        function(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _join(pid: int, timeout: float = 20.0) -> None:
    def ended() -> tuple[int, int] | None:
        found = os.waitpid(pid, os.WNOHANG)
        return found if found[0] == pid else None

    try:
        ending = wait_until(ended, timeout=timeout, message="the child has ended")
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    assert ending is not None
    assert os.waitstatus_to_exitcode(ending[1]) == 0
