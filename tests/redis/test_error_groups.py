"""Failures counted in groups, in the step that settles them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from django_cogworker import DISCARD, Job
from django_cogworker.api import error_group, error_groups, forget_error_group
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.base import Run
from django_cogworker.features.errors import feature
from django_cogworker.features.errors.feature import Errors, groups_key
from django_cogworker.store import tally
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import Effect, Outgoing
from tests.project.jobs import Append, FailOnce, FailTimes
from tests.redis.lost import LOST, look, recoverer
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until

ORPHANED = "django_cogworker.exceptions.JobOrphanedError"


class Discarded(Job):
    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> Any:
        return DISCARD

    def perform(self, name: str) -> None:
        raise KeyError(name)


@pytest.fixture
def few(settings, journal):
    settings.COGWORKER_CONCURRENCY = 2


def total() -> int:
    return sum(each.count for each in error_groups().groups)


def members(key: str) -> list[dict[str, Any]]:
    client: Any = get_store().client
    return [json.loads(each) for each in client.zrange(key, 0, -1)]


# -- a worker counts


def test_failures_that_are_the_same_are_one_group(redis_url, few):
    begun = time.time()
    with working():
        FailTimes.perform_async("a", 2)
        jid = FailTimes.perform_async("b", 3)
        FailOnce.perform_async("c")
        wait_until(lambda: total() == 6)
    page = error_groups(order="count")
    assert page.total == 2
    (often, once) = page.groups
    assert (often.job_class, often.error_class) == (FailTimes.job_name, "ValueError")
    assert often.where == "tests.project.jobs.FailTimes.perform"
    assert "tests/project/jobs.py:" in often.line
    assert (often.count, often.last_day, often.hours[-1] + often.hours[-2]) == (5, 5, 5)
    assert begun - 0.01 <= often.first_seen < often.last_seen <= time.time()
    assert (often.jid, often.message) == (jid, "b fails for the 3. time")
    assert (once.job_class, once.count) == (FailOnce.job_name, 1)
    assert error_group(once.id) == once
    assert error_group("0" * 12) is None


def test_the_entry_of_the_retry_or_dead_set_names_its_group(redis_url, few, monkeypatch):
    monkeypatch.setattr(FailTimes, "retry_in", classmethod(lambda cls, *args: 600.0))
    with working():
        FailTimes.perform_async("a", 9)
        FailOnce.perform_async("b")
        wait_until(lambda: total() == 2)
    keys = get_store().keys
    for key, job in ((keys.retry, FailTimes), (keys.dead, FailOnce)):
        (entry,) = members(key)
        (group,) = error_groups(job_class=job).groups
        assert entry["error_group"] == group.id
        assert entry["error_place"] == group.where


def test_a_discarded_job_is_counted_and_one_that_succeeds_leaves_nothing(redis_url, few):
    with working():
        Append.perform_async("fine")
        Discarded.perform_async("x")
        wait_until(lambda: total() == 1)
    (group,) = error_groups().groups
    assert (group.job_class, group.error_class) == (Discarded.job_name, "KeyError")
    assert group.where.endswith("test_error_groups.Discarded.perform")


def test_a_failure_that_had_to_be_interrupted_is_counted_and_marked(redis_url, few, settings):
    settings.COGWORKER_SERVER_MIDDLEWARE = ["tests.uniquejobs.jobs.spoiling"]
    with working():
        Append.perform_async("a")
        wait_until(lambda: total() == 1)
    (entry,) = members(get_store().keys.retry)
    (group,) = error_groups().groups
    assert entry["interrupted_count"] == 1
    assert entry["error_group"] == group.id
    assert group.where == "tests.uniquejobs.jobs.spoiling.<locals>.spoil"


def test_a_burial_with_its_worker_is_a_failure_without_a_place(fleet):
    known: dict[str, Any] = {"class": Append.job_name}
    fleet.silent(LOST, "a", **known, orphanings=3)
    fleet.hold(LOST, "b", **known)
    assert look(recoverer(fleet.store)) == 2
    (group,) = error_groups().groups
    (entry,) = fleet.dead()
    assert (group.count, group.error_class, group.where) == (1, ORPHANED, "")
    assert (group.jid, entry["error_group"]) == ("a", group.id)


def test_what_is_no_job_is_in_no_group(redis_url, few):
    client, keys = get_store().client, get_store().keys
    with working():
        client.lpush(keys.queue("default").jobs, b"no job")
        wait_until(lambda: members(keys.dead))
    assert "error_group" not in members(keys.dead)[0]
    assert error_groups().total == 0


# -- pages


def keep(*failures: tuple[str, str, float], monkeypatch: Any) -> None:
    """As a worker does: class, message and moment of each."""
    for number, (name, message, at) in enumerate(failures):
        monkeypatch.setattr(time, "time", lambda at=at: at)
        payload = {"class": name, "jid": f"j{number}", "error_class": "E", "error_message": message}
        get_store().apply(Errors().settled(Run(payload, "dead")))
    monkeypatch.undo()


def test_groups_come_in_the_order_that_is_asked_for_and_in_pages(redis_url, monkeypatch):
    now = time.time()
    append, once, times = Append.job_name, FailOnce.job_name, FailTimes.job_name
    keep(
        (append, "old", now - 90_000),
        (append, "old", now - 90_001),
        (append, "new", now - 3),
        (once, "x", now - 50),
        (once, "y", now - 2),
        (times, "z", now - 60),
        monkeypatch=monkeypatch,
    )

    def order(**question: Any) -> list[str]:
        return [each.job_class for each in error_groups(**question).groups]

    assert order() == [once, append, times]
    assert order(order="count") == [append, once, times]
    assert order(order="last_day") == [once, append, times]
    assert order(order="first_seen") == [once, times, append]
    assert order(offset=1, limit=1) == [append]
    assert error_groups(offset=1, limit=1).total == 3
    assert order(job_class=FailOnce) == order(job_class=once) == [once]
    assert order(job_class="no.such") == []
    (group,) = error_groups(job_class=append).groups
    assert (group.count, group.last_day, group.message) == (3, 1, "new")
    assert group.first_seen == pytest.approx(now - 90_000, abs=0.01)
    assert group.last_seen == pytest.approx(now - 3, abs=0.01)


@pytest.mark.parametrize(
    "question", [{"order": "x"}, {"offset": -1}, {"limit": 0}, {"limit": True}, {"offset": "1"}]
)
def test_a_question_that_makes_no_sense_is_refused(redis_url, question):
    with pytest.raises(InvalidQuery, match=next(iter(question))):
        error_groups(**question)


def test_a_group_can_be_forgotten_and_begins_anew(redis_url, monkeypatch):
    failure = (Append.job_name, "x", time.time())
    keep(failure, failure, monkeypatch=monkeypatch)
    (group,) = error_groups().groups
    assert group.count == 2
    assert forget_error_group(group.id) is True
    assert forget_error_group(group.id) is False
    keep(failure, monkeypatch=monkeypatch)
    assert [(each.id, each.count) for each in error_groups().groups] == [(group.id, 1)]


def test_groups_that_are_too_old_or_junk_are_not_shown(redis_url, monkeypatch):
    keep((Append.job_name, "x", time.time() - feature.TTL - 60), monkeypatch=monkeypatch)
    client: Any = get_store().client
    now = f"{time.time():.3f}"
    spoilt = ["no row", f"{now} 2 3\nno json", f"{now} 2 3\n{{}}", f"{now} 2 3 4:5:6\n{{}}"]
    client.hset(groups_key(get_store().keys), mapping={f"no {each}": each for each in spoilt})
    assert error_groups().groups == []
    assert error_group("no no row") is None


def test_a_page_of_all_groups_is_one_round_trip(redis_url, monkeypatch):
    now = time.time()
    keep((Append.job_name, "x", now), monkeypatch=monkeypatch)
    client: Any = get_store().client
    before = client.info("stats")["total_commands_processed"]
    error_groups(limit=500)
    assert client.info("stats")["total_commands_processed"] - before == 2


# -- the table


def done(store: Store, *effects: Effect) -> None:
    if store.reliable:
        job = Outgoing("a", "default", b'{"jid":"a"}', effects=effects)
        assert store.push("lane", time.time_ns(), [job]) == [None]
    else:
        for each in effects:
            store.apply([each])


def count(field: str, at: float, words: str = "text", most: int = 3, oldest: float = 0) -> Effect:
    return Effect("tally", "table", (field, f"{at:.3f}", most, f"{oldest:.0f}", words))


def rows(store: Store) -> dict[str, tally.Row | None]:
    client: Any = store.client
    return {field.decode(): tally.read(row) for field, row in client.hgetall("table").items()}


def test_a_row_counts_in_all_and_by_the_hour(store):
    hour = 3600.0
    done(store, count("a", 100 * hour), count("a", 100 * hour + 5.25), count("a", 101 * hour))
    assert rows(store) == {"a": tally.Row(101 * hour, 3, 100 * hour, {100: 2, 101: 1}, "text")}
    done(store, count("a", 124 * hour, "newer\nlines"), count("a", 99 * hour))
    row = rows(store)["a"]
    assert row is not None
    assert (row.last, row.count, row.first) == (124 * hour, 5, 100 * hour)
    assert row.hours == {101: 1, 124: 1, 99: 1}


def test_the_newest_text_counts(store):
    done(store, count("a", 5, "one"), count("a", 6, '{"é": "2 3\n"}'))
    row = rows(store)["a"]
    assert row is not None
    assert row.text == '{"é": "2 3\n"}'


def test_a_full_table_drops_who_was_silent_for_the_longest_time(store):
    done(store, count("a", 1), count("b", 2), count("c", 3), count("a", 4), count("d", 5))
    assert set(rows(store)) == {"a", "c", "d"}
    done(store, count("a", 6))
    assert set(rows(store)) == {"a", "c", "d"}


def test_who_comes_new_to_a_full_table_makes_the_old_leave(store):
    done(store, *(count(each, at) for at, each in enumerate("abc")), count("d", 3, oldest=2))
    assert set(rows(store)) == {"c", "d"}


def test_a_full_table_makes_room_for_several(store):
    fields = "abcdefghijklmnopqrst"
    done(store, *(count(each, at, most=20) for at, each in enumerate(fields)))
    assert len(rows(store)) == 20
    done(store, count("new", 50, most=20))
    assert set(rows(store)) == {*fields[2:], "new"}


def test_junk_in_a_table_is_overwritten_or_leaves_first(store):
    client: Any = store.client
    client.hset("table", mapping={"a": "junk", "b": "junk"})
    done(store, count("a", 5), count("c", 6), count("d", 7))
    assert set(rows(store)) == {"a", "c", "d"}
    row = rows(store)["a"]
    assert row is not None
    assert row.count == 1


def test_a_table_of_the_wrong_type_stops_nothing(store):
    client: Any = store.client
    client.set("table", "text")
    done(store, count("a", 5), Effect("hset", "hash", ("b", 2)))
    assert client.hgetall("hash") == {b"b": b"2"}
    assert client.get("table") == b"text"


def test_the_table_of_the_groups_has_a_bound_and_a_ttl(redis_url):
    store, client = get_store(), get_store().client
    key = groups_key(store.keys)
    for number in range(feature.MOST + 20):
        payload = {"class": Append.job_name, "jid": "j", "error_class": f"E{number}"}
        store.apply(Errors().settled(Run(payload, "dead")))
        assert number < feature.MOST or client.hlen(key) <= feature.MOST
    assert client.ttl(key) > 29 * 86_400
    names = {each.error_class for each in error_groups(limit=500).groups}
    assert not names & {
        f"E{number}" for number in range(10)
    }  # several of one millisecond are alike
    assert f"E{feature.MOST + 19}" in names
