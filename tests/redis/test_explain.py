"""Why a job is not running: each reason, with what it says, and how much it costs to ask."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command
from django.utils import timezone, translation

from django_cogworker import Job
from django_cogworker.api import Explanation, Queue, cancel, explain
from django_cogworker.features import registry as features
from django_cogworker.features.base import Feature, Reason, Run
from django_cogworker.features.status import record
from django_cogworker.features.status.feature import StatusFeature
from django_cogworker.features.unique.locks import name_of, waiters_of
from django_cogworker.jobs import registry
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Beat, ExchangeRequest
from django_cogworker.testing import fake
from django_cogworker.worker import roster
from django_cogworker.worker.roster import Roster
from tests.asyncjobs.jobs import Waits
from tests.followed.jobs import Followed, FollowedWait
from tests.project.jobs import Append, AppendLater, FailOnce, FailTimes, Wait
from tests.redis.lost import LOST, look, recoverer
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until
from tests.uniquejobs.jobs import Alone, Latest

pytestmark = pytest.mark.usefixtures("redis_url", "journal")

ME = "host:1:aaaaaaaaaaaa"
NAMES = ["default", "low"]


class Tracked(Job, track=True):
    def perform(self, name: str = "") -> None: ...


class Soon(Job, expires_in=0.001):
    def perform(self) -> None: ...


class SoonTracked(Job, expires_in=0.001, track=True):
    def perform(self) -> None: ...


def beat(
    identity: str = ME,
    *,
    busy: int = 0,
    quiet: bool = False,
    queues: Any = NAMES,
    knows: Any = None,
    **info: Any,
) -> None:
    """A worker beats, and tells that it knows these classes, if any are named."""
    store = get_store()
    facts = {"concurrency": 2, "queues": list(queues), **info}
    if knows is not None:
        client: Any = store.client
        facts["classes"] = f"digest{len(knows)}"
        client.hset(store.keys.classes(facts["classes"]), mapping=dict.fromkeys(knows, 1))
    store.beat(Beat(identity, json.dumps(facts), busy, quiet, list(queues)))


def codes(jid: str | None) -> list[str]:
    return explain(str(jid)).codes


def data(found: Explanation, code: str) -> dict[str, Any]:
    return next(each.data for each in found.reasons if each.code == code)


both = pytest.mark.parametrize("job", [Append, Tracked])


# -- on a queue


@both
def test_a_job_that_nothing_holds_up_waits_for_its_turn(job):
    beat(busy=1)
    beat("host:2:b", busy=2)
    Append.perform_async("first")
    found = explain(str(job.perform_async("a")))
    assert (found.state, found.queue, found.job_class) == ("queued", "default", job.job_name)
    assert found.codes == ["turn"]
    assert data(found, "turn") == {"queue": "default", "waiting": 2, "busy": 1, "workers": 2}


@both
def test_a_queue_that_is_paused(job):
    beat()
    jid = job.perform_async("a")
    Queue("low").pause()
    assert codes(jid) == ["turn"]
    Queue("default").pause()
    assert codes(jid) == ["paused"]


@both
def test_no_worker_and_none_that_reads_the_queue(job):
    jid = job.perform_async("a")
    found = explain(str(jid))
    assert found.codes == ["no_worker"]
    beat(queues=["low"])
    beat("host:2:b", queues=["mail"])
    found = explain(str(jid))
    assert found.codes == ["unread"]
    assert data(found, "unread") == {"queue": "default", "workers": 2}
    beat("host:3:c", queues=[], async_queues=["default"], async_concurrency=5, async_busy=0)
    assert codes(jid) == ["turn"]


@both
def test_workers_that_are_quiet(job):
    jid = job.perform_async("a")
    beat(quiet=True)
    beat("host:2:b", quiet=True)
    found = explain(str(jid))
    assert found.codes == ["quiet"]
    assert data(found, "quiet")["workers"] == 2
    beat("host:2:b")
    assert codes(jid) == ["turn"]


@both
def test_workers_that_are_busy(job):
    jid = job.perform_async("a")
    beat(busy=2)
    beat("host:2:b", busy=1, quiet=True)
    beat("host:3:c", busy=0, queues=["low"])
    found = explain(str(jid))
    assert found.codes == ["busy"]
    assert (data(found, "busy")["busy"], data(found, "busy")["workers"]) == (1, 1)
    beat("host:2:b", busy=1)
    assert codes(jid) == ["turn"]


def test_the_places_of_the_loop_and_of_the_processors_are_counted_apart():
    loop: dict[str, Any] = {"async_queues": ["hooks"], "async_concurrency": 100}
    on_loop = Append.set(queue="hooks").perform_async("b")
    in_thread = Append.perform_async("c")
    beat(busy=12, queues=["default"], async_busy=10, **loop)
    assert (codes(on_loop), codes(in_thread)) == (["turn"], ["busy"])
    beat(busy=101, queues=["default"], async_busy=100, **loop)
    assert (codes(on_loop), codes(in_thread)) == (["busy"], ["turn"])


@both
def test_a_class_that_no_living_worker_knows(job):
    jid = job.perform_async("a")
    beat(knows=["shop.Other"])
    beat("host:2:b", knows=["shop.Other", "shop.More"])
    beat("host:3:c", queues=["low"], knows=["1", "2", job.job_name])
    found = explain(str(jid))
    assert found.codes == ["unknown_class"]
    assert data(found, "unknown_class") == {"class": job.job_name, "workers": 2}
    beat("host:2:b", knows=["shop.Other", "2", "3", job.job_name])
    assert codes(jid) == ["turn"]


@pytest.mark.parametrize("digest", ["", "gone"])
def test_a_worker_that_does_not_tell_its_classes_may_know_it(digest):
    jid = Append.perform_async("a")
    beat(knows=["shop.Other"])
    beat("host:2:b", classes=digest)
    assert codes(jid) == ["turn"]


@both
def test_a_suspect_runs_alone(job, fleet):
    beat()
    jid = str(job.perform_async("a"))
    assert codes(jid) == ["turn"]
    queue = fleet.keys.queue("default").jobs
    payload = {**json.loads(fleet.client.lindex(queue, 0)), "orphanings": 2}
    fleet.client.lset(queue, 0, json.dumps(payload))
    get_store().apply(StatusFeature().recovered(payload, "front"))
    found = explain(jid)
    assert found.codes == ["alone"]
    assert data(found, "alone") == {"orphanings": 2}


def test_recovery_notes_a_suspect_that_is_tracked(fleet):
    """What a recoverer writes into the job it tells the features, too."""
    known: dict[str, Any] = {"class": Tracked.job_name, "track": True}
    fleet.silent(LOST, "a", **known, orphanings=1)
    assert look(recoverer(fleet.store)) == 1
    beat()
    found = explain("a")
    assert (found.state, found.codes) == ("scheduled", ["not_due", "alone"])
    assert data(found, "alone") == {"orphanings": 2}


def test_a_suspect_that_came_to_an_end_of_its_own_is_none_any_more():
    payload: dict[str, Any] = {
        "class": Tracked.job_name,
        "jid": "a",
        "track": True,
        "orphanings": 2,
        "args": [],
    }
    payload["queue"] = "default"
    get_store().apply(StatusFeature().settled(Run(payload, "waiting", delay=500.0)))
    beat()
    assert codes("a") == ["not_due", "alone"]
    get_store().apply(StatusFeature().settled(Run(payload, "retrying", delay=500.0)))
    assert codes("a") == ["not_due"]


# -- what features say


def test_a_lock_that_another_job_has(journal):
    beat()
    store = get_store()
    jid = str(Alone.perform_async("a"))
    assert codes(jid) == ["turn"]
    key = json.loads(store.client.lindex(store.keys.queue("default").jobs, 0))["unique_key"]  # type: ignore[arg-type]
    store.client.set(name_of(store.keys, key), jid)
    assert codes(jid) == ["turn"]
    store.client.set(name_of(store.keys, key), "other")
    found = explain(jid)
    assert found.codes == ["locked"]
    assert data(found, "locked") == {"holder": "other", "key": key}
    assert "Job other " in found.reasons[0].text


def test_a_lock_that_another_job_has_keeps_a_job_in_the_scheduled_set(journal):
    with working():
        holder = str(Alone.perform_async("a"))
        journal.wait_for("started a")
        jid = str(Alone.perform_async("a", "2"))
        wait_until(lambda: explain(jid).state == "scheduled")
        found = explain(jid)
        assert found.codes == ["not_due", "locked"]
        assert data(found, "locked")["holder"] == holder
        assert get_store().client.exists(waiters_of(get_store().keys, data(found, "locked")["key"]))
        journal.release("a")
        journal.release("a2")
        wait_until(lambda: explain(jid).state == "complete")


def test_a_lock_that_a_newer_job_took_over():
    beat()
    old = Latest.perform_async("a", "1")
    new = Latest.perform_async("a", "2")
    found = explain(str(old))
    assert found.codes == ["replaced"]
    assert data(found, "replaced")["holder"] == new
    assert codes(new) == ["turn"]


@pytest.mark.parametrize("job", [Soon, SoonTracked])
def test_a_job_that_has_expired(job):
    beat()
    jid = str(job.perform_async())
    wait_until(lambda: codes(jid) == ["expired"])
    assert time.time() - 10 < data(explain(jid), "expired")["expired_at"] < time.time()


@both
def test_a_wish_to_cancel_that_stands(job):
    beat()
    jid = str(job.perform_async("a"))
    assert cancel(jid, budget=-1) in ("asked", "removed")
    if job is Append:
        found = explain(jid)
        assert found.codes == ["cancelled"]
        assert time.time() - 10 < data(found, "cancelled")["since"] <= time.time()
    else:
        assert explain(jid).state in ("cancelled", "queued")


def test_a_feature_of_ones_own_can_have_reasons():
    class Moon(Feature):
        name = "moon"

        def holding_up(self, payload: dict[str, Any], state: str) -> tuple[Reason, ...]:
            return (Reason("moon", f"{payload['class']} {state}", {"full": False}),)

    beat()
    moon = Moon()
    features.add(moon)
    try:
        found = explain(str(Append.perform_async("a")))
    finally:
        features.remove(moon)
    assert found.reasons == (Reason("moon", f"{Append.job_name} queued", {"full": False}),)


# -- in a set


@both
def test_a_job_that_is_not_due(job):
    beat(busy=2)
    found = explain(str(job.perform_in(500, "a")))
    assert (found.state, found.codes) == ("scheduled", ["not_due"])
    assert data(found, "not_due")["until"] == pytest.approx(time.time() + 500, abs=10)


def test_what_will_hold_it_up_then_is_told_too():
    Queue("low").pause()
    assert codes(AppendLater.perform_in(500, "a")) == ["not_due", "paused", "no_worker"]


@both
def test_a_job_that_is_due_waits_for_a_worker_to_move_it(job):
    jid = job.perform_in(0.01, "a")
    wait_until(lambda: codes(jid) == ["no_worker"])
    beat()
    assert codes(jid) == ["due"]


@pytest.mark.parametrize("job", [FailTimes, Followed])
def test_a_job_that_waits_for_its_next_attempt(job, monkeypatch):
    monkeypatch.setattr(job, "retry_in", classmethod(lambda cls, *args: 600.0))
    with working():
        jid = str(job.perform_async("a", 9))
        wait_until(lambda: explain(jid).state == "retrying")
        found = explain(jid)
    assert found.codes == ["not_due"]
    told = data(found, "not_due")
    assert told["until"] == pytest.approx(time.time() + 600, abs=20)
    assert (told["failures"], told["error_class"]) == (1, "ValueError")


# -- in a worker, over, nowhere


@pytest.mark.parametrize("job", [Wait, FollowedWait])
def test_a_job_that_runs(job, journal):
    with working() as worker:
        jid = str(job.perform_async("a"))
        journal.wait_for("started a")
        found = explain(jid)
        assert (found.state, found.codes, found.worker) == ("working", ["running"], worker.identity)
        assert data(found, "running")["since"] == pytest.approx(time.time(), abs=10)
        if job is FollowedWait:  # what a job reports of itself says nothing of its start
            get_store().client.hset(record.key_of(jid), "updated", "5")
            assert data(explain(jid), "running")["since"] == pytest.approx(time.time(), abs=10)
        cancel(jid)
        assert codes(jid) == ["running", "cancelled"]
        get_store().client.delete(get_store().keys.process(worker.identity))
        assert codes(jid) == ["worker_gone"]
        journal.release("a")


def test_a_tracked_job_that_is_over():
    with working():
        jid = str(Followed.perform_async("a"))
        wait_until(lambda: explain(jid).codes == ["over"])
    found = explain(jid)
    assert (found.state, data(found, "over")["how"]) == ("complete", "complete")
    assert data(found, "over")["at"] == pytest.approx(time.time(), abs=20)


@pytest.mark.parametrize("job", [FailOnce, FailOnce.set(track=True)])
def test_a_job_that_is_dead(job):
    with working():
        jid = str(job.perform_async("a"))
        wait_until(lambda: explain(jid).state == "dead")
    found = explain(jid)
    assert found.codes == ["dead"]
    told = data(found, "dead")
    assert (told["error_class"], told["error_message"]) == ("ValueError", "a fails")
    assert told["at"] == pytest.approx(time.time(), abs=20)


def test_a_job_that_is_nowhere():
    for number in range(3):
        Append.perform_async(str(number))
    found = explain("0" * 24)
    assert (found.state, found.codes) == ("unknown", ["not_found"])
    assert data(found, "not_found") == {"looked_at": 3, "everywhere": True}
    found = explain("0" * 24, budget=-1)
    assert data(found, "not_found") == {"looked_at": 0, "everywhere": False}


def test_a_job_that_left_nothing_but_its_failures():
    with working():
        jid = str(FailOnce.perform_async("a"))
        wait_until(lambda: explain(jid).state == "dead")
    get_store().client.delete(get_store().keys.dead)
    found = explain(jid)
    assert found.codes == ["last_attempt", "not_found"]
    told = data(found, "last_attempt")
    assert (told["attempt"], told["outcome"], told["error_class"]) == (1, "dead", "ValueError")


def test_in_a_test_mode_the_test_runs_jobs():
    with fake():
        found = explain(str(Append.perform_async("a")))
        assert (found.state, found.codes) == ("queued", ["test_mode"])
        assert codes("0" * 24) == ["not_found"]
        jid = str(Tracked.perform_async())
        assert codes(jid) == ["test_mode"]
        Tracked.drain()
        assert codes(jid) == ["over"]


def test_it_takes_a_jid():
    for junk in ("", None, 5):
        with pytest.raises(ValueError, match="jid"):
            explain(junk)  # type: ignore[arg-type]


# -- for people and programs


def test_json_can_hold_it():
    beat(busy=2)
    for jid in (Append.perform_async("a"), Tracked.perform_in(500), "0" * 24):
        found = explain(str(jid))
        told = json.loads(json.dumps(found.as_dict()))
        assert told["jid"] == jid
        assert [each["code"] for each in told["reasons"]] == found.codes


def test_sentences_are_in_the_time_zone_that_counts():
    with timezone.override("Asia/Tokyo"), translation.override("en"):
        (reason, _) = explain(str(Append.perform_in(500, "a"))).reasons
    assert reason.text.startswith("It is not due before ")
    assert reason.text.endswith(" JST.")


@contextmanager
def round_trips(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How many requests this process sends."""
    sent = []
    send = redis.Connection.send_packed_command

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(1)
        return send(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(redis.Connection, "send_packed_command", counted)
        yield lambda: len(sent)


def in_state(state: str) -> str:
    """The jid of a tracked job in that state."""
    store = get_store()
    if state == "scheduled":
        return str(Alone.perform_in(5_000, "a"))
    jid = str(Tracked.perform_async("a"))
    if state == "queued":
        return jid
    reply = store.exchange(ExchangeRequest(ME, 1, 1, ("default",), (), ()))
    payload = json.loads(reply.jobs[0].payload)
    store.apply([record.begun(payload, ME)])
    if state == "complete":
        store.apply(StatusFeature().settled(Run(payload, "finished")))
    return jid


@pytest.mark.parametrize("state", ["queued", "scheduled", "working", "complete"])
def test_a_tracked_job_takes_a_constant_number_of_round_trips(state, monkeypatch):
    def asked() -> int:
        explain(jid)  # opens what connections it needs
        with round_trips(monkeypatch) as number:
            assert explain(jid).state == state
            return number()

    beat()
    jid = in_state(state)
    few = asked()
    Append.perform_bulk([(str(number),) for number in range(3_000)])
    FailOnce.perform_bulk([(str(number),) for number in range(3_000)], at=time.time() + 900)
    for number in range(50):
        beat(f"host:{number}:x", knows=[Append.job_name, str(number)])
    assert few == asked() <= 7


# -- what workers tell


def test_a_worker_tells_which_classes_it_knows():
    keys = get_store().keys
    client: Any = get_store().client
    with working() as worker:
        wait_until(lambda: client.exists(keys.process(worker.identity)))
        info = json.loads(client.hget(keys.process(worker.identity), "info"))
        key = keys.classes(info["classes"])
        wait_until(lambda: client.exists(key))
        assert {each.decode() for each in client.hkeys(key)} == set(registry.names())
        assert 86_000 < client.ttl(key) <= 86_400


def test_the_names_are_written_once_and_then_now_and_then(monkeypatch):
    store, now = get_store(), [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ours = Roster(store)
    key = store.keys.classes(ours.digest)

    def told() -> bool:
        store.client.delete(key)
        assert store.keys.classes(ours.digest) == key
        ours.tell()
        return bool(store.client.exists(key))

    assert [told(), told()] == [True, False]
    now[0] += roster.INTERVAL
    assert [told(), told()] == [True, False]


def test_a_class_that_comes_later_makes_another_digest(monkeypatch):
    ours, store = Roster(get_store()), get_store()
    before = ours.digest
    ours.tell()
    more = [*registry.names(), "shop.Late"]
    monkeypatch.setattr(registry, "names", lambda: more)
    assert ours.digest != before
    ours.tell()
    assert store.client.hexists(store.keys.classes(ours.digest), "shop.Late")
    monkeypatch.undo()
    assert Roster(store).digest == before


def test_many_names_are_told_too(monkeypatch):
    names = [f"shop.jobs.Number{number}" for number in range(4_500)]
    monkeypatch.setattr(registry, "names", lambda: names)
    ours, store = Roster(get_store()), get_store()
    key = store.keys.classes(ours.digest)
    ours.tell()
    assert store.client.hlen(key) == 4_500


def test_a_worker_with_a_loop_tells_how_much_runs_there(journal, settings):
    settings.COGWORKER_ASYNC_QUEUES = ["hooks"]
    client: Any = get_store().client
    with working() as worker:
        Waits.perform_async("a")
        Wait.perform_async("b")
        journal.wait_for("started a")
        journal.wait_for("started b")
        worker._heartbeat.now()

        def told() -> tuple[int, int]:
            key = get_store().keys.process(worker.identity)
            info, busy = client.hmget(key, "info", "busy")
            return json.loads(info)["async_busy"], int(busy)

        wait_until(lambda: told() == (1, 2))
        journal.release("a")
        journal.release("b")


# -- commands


@pytest.mark.parametrize("verb", ["find", "explain"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([""], "No job was named"),
        (["  "], "No job was named"),
        (["a", "--seconds", "nan"], "'nan' is no number of seconds"),
        (["a", "--seconds", "inf"], "'inf' is no number of seconds"),
        (["a", "--seconds", "soon"], "'soon' is no number of seconds"),
    ],
)
def test_a_command_that_cannot_be_says_so(redis_url, verb, words, told):
    with pytest.raises(CommandError, match=told):
        call_command("cogworker", verb, *words)
