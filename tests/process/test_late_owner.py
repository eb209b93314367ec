"""A worker that was taken for dead and comes back changes nothing that is others' by now."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from django_cogworker.store.scripts import script
from tests.killers.jobs import FailsLate
from tests.oddjobs.jobs import OneShotQuick
from tests.process.dying import QUICK, identities, ready, stand_still, tombstones, wait_for_call
from tests.process.odd import KEYS
from tests.project.jobs import Append, Wait
from tests.support.waiting import wait_until


def check_it_goes_on(late: Any, old: str, journal: Any, board: Any) -> str:
    """The late owner says what happened to it and works on under another name, alone by now."""
    late.wait_for_line(rf"This worker \({old}\) was taken for dead")
    new = late.wait_for_line(r"it goes on as (\S+)\.")[1]
    assert new != old
    wait_until(lambda: new in identities(board))
    Append.perform_async("and on it goes")
    journal.wait_for("and on it goes")
    board.wait_until_settled()
    assert board.client.hlen(KEYS.workers(old)) == 0
    assert not board.client.hexists(KEYS.holders, old)
    return new


@pytest.mark.parametrize("first", ["the late owner", "the new one"])
def test_a_late_success_does_not_acknowledge_the_new_run(start_worker, journal, board, first):
    """SK-14: whoever ends first, the job counts once, and stays in progress while the new one runs."""
    Wait.perform_async("a")
    late = start_worker("-c", "1", conf=QUICK)
    old = ready(late)
    journal.wait_for("started a")
    other = start_worker("-c", "1", conf=QUICK)
    new_owner = ready(other)
    stand_still(late)
    journal.wait_for("started a", times=2, timeout=30)
    if first == "the late owner":
        stand_still(other)
        late.resume()
        journal.release("a")
        journal.wait_for("finished a")
        late.wait_for_line("its end changes nothing|was taken for dead")
        late.wait_for_line("it goes on as")
        assert board.processed == 0
        assert board.client.hlen(KEYS.workers(new_owner)) == 1
        other.resume()
        journal.wait_for("finished a", times=2)
        board.wait_until_settled()
    else:
        journal.release("a")
        journal.wait_for("finished a")
        board.wait_until_settled()
        late.resume()
        journal.wait_for("finished a", times=2)
    assert other.stop() == 0
    assert board.processed == 1
    check_it_goes_on(late, old, journal, board)
    assert (board.processed, board.failed, board.all_dead()) == (2, 0, [])
    assert late.stop() == 0
    assert board.in_progress() == 0


@pytest.mark.parametrize("retry", [True, False])
def test_a_late_failure_writes_nothing(start_worker, journal, board, retry):
    """SK-14: no retry, no burial, no record of the attempt, no death hook; the new run counts."""
    jid = FailsLate.set(retry=retry).perform_async("a")
    late = start_worker("-c", "1", conf=QUICK)
    old = ready(late)
    journal.wait_for("started a 1")
    other = start_worker("-c", "1", conf=QUICK)
    ready(other)
    stand_still(late)
    journal.wait_for("started a 2", timeout=30)
    late.resume()
    journal.release("fail")
    journal.wait_for("failing a 1")
    late.wait_for_line("it goes on as")
    late.wait_for_line("failed for good" if not retry else r"failed \(attempt 1\)")
    wait_for_call(board, "exchange", lambda: Append.perform_async("by the way"))
    assert not board.in_sets(jid)
    assert board.outcomes(jid) == []
    assert board.failed == 0
    journal.release("succeed")
    journal.wait_for("finished a 2")
    assert other.stop() == 0
    check_it_goes_on(late, old, journal, board)
    assert (board.processed, board.failed) == (3, 0)
    assert journal.count("exhausted a") == 0
    assert not board.in_sets(jid)


def freeze_at(proxy: Any, name: str) -> Callable[[], bool]:
    """Hold everything back from the first call of that script on; tells whether that has begun."""
    sha = script(name).sha.encode()
    seen: list[float] = []

    def hold(command: bytes) -> bool:
        if sha in command and not seen:
            seen.append(time.monotonic())
            proxy.freeze()
        return False

    proxy.delay_reply(0, hold)
    return lambda: bool(seen)


@pytest.fixture
def start_behind_proxy(start_worker, make_proxy, redis_url):
    """Start a worker whose packets can be held back: it, its identity, its proxy."""

    def start(*args: str) -> tuple[Any, str, Any]:
        proxy = make_proxy(redis_url)
        worker = start_worker(*args, conf=QUICK, url=proxy.url)
        return worker, ready(worker), proxy

    return start


def bury(start_worker: Any, board: Any, identity: str) -> Any:
    """Another worker takes it for dead; that one is returned."""
    other = start_worker("-c", "1", conf=QUICK)
    ready(other)
    wait_until(
        lambda: KEYS.tombstone(identity).encode() in tombstones(board),
        timeout=30,
        message="the burial",
    )
    return other


def test_a_fetch_that_arrives_after_the_burial_strands_nothing(
    start_worker, start_behind_proxy, journal, board
):
    """The packet is on its way while others take its sender for dead; then a job comes, then it."""
    late, old, proxy = start_behind_proxy("-c", "2")
    held = freeze_at(proxy, "exchange")
    wait_until(held, message="a look for jobs")  # without any news it looks every two seconds
    assert bury(start_worker, board, old).stop() == 0
    Append.perform_async("a")
    wait_for_call(board, "exchange", proxy.thaw)
    assert board.client.hlen(KEYS.workers(old)) == 0
    journal.wait_for("a")
    check_it_goes_on(late, old, journal, board)
    assert journal.lines() == ["a", "and on it goes"]
    assert board.processed == 2


def test_a_start_mark_that_arrives_after_the_burial_starts_nothing(
    start_worker, start_behind_proxy, journal, board
):
    """DR-12: an at-most-once job that was about to start here has run elsewhere meanwhile."""
    late, old, proxy = start_behind_proxy("-c", "1")
    held = freeze_at(proxy, "mark_started")
    OneShotQuick.perform_async("once")
    wait_until(held, message="the start mark")
    other = bury(start_worker, board, old)
    journal.wait_for("once")
    board.wait_until_settled()
    wait_for_call(board, "mark_started", proxy.thaw)
    assert other.stop() == 0
    check_it_goes_on(late, old, journal, board)
    assert journal.lines() == ["once", "and on it goes"]
    assert board.client.hgetall(KEYS.workers(old)) == {}
    assert (board.processed, board.all_dead()) == (2, [])


def test_a_worker_that_was_taken_for_dead_still_tells_which_jobs_had_started(
    start_worker, start_behind_proxy, journal, board
):
    """Its second death is judged as well as its first: what had not started is innocent."""
    Wait.perform_async("a")
    late = start_worker("-c", "2", conf=QUICK)
    old = ready(late)
    journal.wait_for("started a")
    stand_still(late)
    other = bury(start_worker, board, old)
    journal.wait_for("started a", times=2)
    late.resume()
    journal.release("a")
    journal.wait_for("finished a", times=2)
    assert other.stop() == 0
    new = check_it_goes_on(late, old, journal, board)
    # A job in its hash that no processor has: as if the reply to its fetch were on its way.
    Wait.perform_async("b")
    journal.wait_for("started b")
    stand_still(late)
    (ticket,) = board.client.hkeys(KEYS.workers(new))
    value = board.client.hget(KEYS.workers(new), ticket)
    innocent = value.replace(b'"b"', b'"c"')
    board.client.hset(KEYS.workers(new), str(int(ticket) + 1), innocent)
    late.kill()
    fresh = start_worker("-c", "2", conf=QUICK)
    journal.wait_for("started b", times=2)
    journal.wait_for("started c")
    stand_still(fresh)
    counts = {}
    for raw in board.client.hvals(KEYS.workers(ready(fresh))):
        counts[b'"b"' in raw] = b'"orphanings"' in raw
    assert counts == {True: True, False: False}


def test_a_beat_that_arrives_after_the_burial_brings_nobody_back(
    start_worker, start_behind_proxy, journal, board
):
    """Else the next worker would see the old identity, find its process, or miss it, and judge again."""
    late, old, proxy = start_behind_proxy("-c", "1")
    held = freeze_at(proxy, "beat")
    wait_until(held, message="a beat")
    assert bury(start_worker, board, old).stop() == 0
    wait_for_call(board, "beat", proxy.thaw)
    new = check_it_goes_on(late, old, journal, board)
    assert identities(board) == {new}
    assert board.client.hkeys(KEYS.members) == [new.encode()]
    assert board.client.smembers(KEYS.processes) == {new.encode()}
