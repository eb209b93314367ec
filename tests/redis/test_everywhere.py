"""Jobs wherever they lie: the heads of all places, a search through all, one job by its jid, its attempts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from django_cogworker.api import Action, AllJobs, Criteria, RetrySet, attempts, explain, seek
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.payload.failure import attempt_record
from tests.project.jobs import Append
from tests.redis.lost import payload
from tests.redis.waiting_jobs import DEAD, RETRY, SCHEDULE, enqueue, in_set, jids, put, queued
from tests.support.round_trips import counted

ME = "host:1:aaaaaaaaaaaa"
PLACES = ["worker", "retry", "schedule", "dead", "queue"]


def hold(client: Any, *names: str, worker: str = ME, ago: float = 5.0, **fields: Any) -> None:
    """A worker's hands are full of these."""
    for ticket, name in enumerate(names, 1):
        head = f"{int((time.time() - ago) * 1000)} default\n".encode()
        client.hset(f"cogworker:workers:{worker}", str(ticket), head + payload(name, **fields))
    client.hset("cogworker:holders", worker, len(names) + 1)
    client.hset(f"cogworker:process:{worker}", "busy", len(names))


@pytest.fixture
def everywhere(redis_client):
    """A job in each place."""
    now = time.time()
    hold(redis_client, "w")
    put(redis_client, RETRY, "r", at=now + 30)
    put(redis_client, SCHEDULE, "s", at=now + 20)
    put(redis_client, DEAD, "d", at=now - 10)
    enqueue(redis_client, "q", enqueued_at=now - 1)
    return redis_client


def names(entries: Any) -> list[str]:
    return [each.jid for each in entries]


class TestHeads:
    def test_what_runs_comes_first_then_what_is_nearest_to_now(self, everywhere):
        heads = AllJobs().heads()
        assert names(heads.entries) == ["w", "q", "d", "s", "r"]
        assert heads.sizes == dict.fromkeys(PLACES, 1)
        first = heads.entries[0]
        assert (first.place, first.worker, first.alive) == ("worker", ME, True)
        assert abs(time.time() - 5 - (first.at or 0)) < 5
        assert [each.label for each in heads.entries[1:3]] == ["queue:default", "dead"]

    def test_as_many_of_a_place_as_are_asked_for(self, redis_client):
        put(redis_client, RETRY, "a", "b", "c", at=time.time())
        put(redis_client, DEAD, "d", "e", "f", at=1_000)
        assert names(AllJobs().heads().entries) == ["a", "b", "c", "f", "e", "d"]
        assert names(AllJobs().heads(2).entries) == ["a", "b"]

    def test_some_places_alone(self, everywhere):
        heads = AllJobs(["dead", "queue"]).heads()
        assert names(heads.entries) == ["q", "d"]
        assert heads.sizes == {"dead": 1, "queue": 1}
        with pytest.raises(InvalidQuery, match="cellar"):
            AllJobs(["cellar"])  # type: ignore[list-item]

    def test_nothing_at_all(self, redis_client):
        heads = AllJobs().heads()
        assert (heads.entries, heads.sizes) == ([], dict.fromkeys(PLACES, 0))

    def test_a_few_of_each_of_the_longest_queues_in_few_round_trips(self, redis_client):
        def look() -> tuple[Any, int]:
            with counted() as trips:
                heads = AllJobs().heads(50)
            return heads, trips.number

        look()
        enqueue(redis_client, "x")
        _, few = look()
        for number in range(60):
            many = [f"{number}-{each}" for each in range(3 if number < 55 else 10)]
            enqueue(redis_client, *many, queue=f"queue{number}", enqueued_at=time.time())
        put(redis_client, DEAD, *(f"d{each}" for each in range(2_000)))
        heads, trips = look()
        assert trips == few <= 4
        assert heads.sizes["queue"] == 55 * 3 + 5 * 10 + 1
        assert heads.sizes["dead"] == 2_000
        assert len(heads.entries) == 50
        newest = AllJobs(["queue"]).heads(1000).entries
        assert {each.record.on for each in newest} >= {f"queue{each}" for each in range(55, 60)}
        assert "59-9" in names(newest)
        assert "59-0" not in names(AllJobs(["queue"]).heads(200).entries)

    def test_a_key_of_the_wrong_type_hides_no_other_job(self, everywhere):
        everywhere.delete(RETRY)
        everywhere.set(RETRY, "x")
        assert names(AllJobs().heads().entries) == ["w", "q", "d", "s"]


class TestSearch:
    def test_goes_through_all_places_and_on_from_its_cursor(self, everywhere):
        found: list[str] = []
        cursor: str | None = ""
        for _ in range(20):
            part = AllJobs().search(Criteria(), limit=1, cursor=cursor)
            found += names(part.entries)
            if part.finished:
                break
            cursor = part.cursor
        assert found == ["w", "r", "s", "d", "q"]
        assert part.cursor is None

    def test_finds_by_what_jobs_are(self, everywhere):
        enqueue(everywhere, "a|b", queue="other|queue", tags=["red"])
        assert names(AllJobs().search(tag="red").entries) == ["a|b"]
        assert names(AllJobs().search(error="went wrong").entries) == ["r", "d"]
        assert names(AllJobs(["dead"]).search(error="went wrong").entries) == ["d"]
        assert names(AllJobs().search(queue="other|queue").entries) == ["a|b"]
        assert AllJobs().search(jid="nobody").looked_at == 6

    def test_without_time_it_still_comes_on_and_skips_nothing(self, everywhere):
        for number in range(3):
            enqueue(everywhere, *(f"{number}-{each}" for each in range(150)), queue=f"q|{number}")
        found: list[str] = []
        cursor: str | None = ""
        calls = 0
        while cursor is not None:
            part = AllJobs().search(Criteria(), cursor=cursor, limit=1000, budget=0)
            found += names(part.entries)
            cursor = part.cursor
            calls += 1
        assert len(found) == len(set(found)) == 455
        assert calls >= 8

    @pytest.mark.parametrize("cursor", ["x", "cellar|", "worker|x", "dead|x", "|x"])
    def test_what_is_no_cursor_is_refused(self, everywhere, cursor):
        with pytest.raises(InvalidQuery):
            AllJobs().search(jid="x", cursor=cursor)

    def test_of_many_that_run_none_is_left_out(self, redis_client):
        hold(redis_client, *(f"w{each}" for each in range(7)))
        first = AllJobs().search(Criteria(), limit=5)
        rest = AllJobs().search(Criteria(), limit=5, cursor=first.cursor)
        assert sorted(names([*first.entries, *rest.entries])) == [f"w{each}" for each in range(7)]


class TestSeek:
    def test_finds_a_job_in_each_place_and_again_by_where_it_was_seen(self, everywhere):
        for jid, place in zip("wrsdq", PLACES, strict=True):
            found = seek(jid)
            assert found.sighting is not None
            assert (found.sighting.place, found.sighting.jid) == (place, jid)
            with counted() as trips:
                again = seek(jid, seen=found.sighting.seen)
            assert again.sighting == found.sighting or again.sighting is not None
            assert again.looked_at == 0
            assert trips.number <= 2

    def test_one_that_has_moved_on_is_looked_for(self, everywhere):
        seen = seek("r").sighting
        assert seen is not None
        assert [bool(each) for each in AllJobs().act([seen], Action("kill"))] == [True]
        found = seek("r", seen=seen.seen).sighting
        assert found is not None
        assert found.place == "dead"

    def test_a_part_of_a_jid_is_none(self, redis_client):
        put(redis_client, DEAD, "abcd", "abc")
        found = seek("abc").sighting
        assert found is not None
        assert found.jid == "abc"
        assert not seek("ab")

    def test_says_how_far_it_came_and_goes_on(self, redis_client):
        put(redis_client, RETRY, *(f"r{each}" for each in range(3_000)))
        enqueue(redis_client, "last")
        found = seek("last", budget=0)
        assert not found
        assert (found.looked_at, found.cursor is not None) == (100, True)
        steps = 0
        while not found and found.cursor:
            found = seek("last", cursor=found.cursor, budget=0)
            steps += 1
        assert found
        assert steps > 3

    def test_where_everything_was_looked_at_it_says_so(self, everywhere):
        found = seek("nobody")
        assert (found.sighting, found.cursor, found.looked_at) == (None, None, 5)

    def test_a_hint_that_is_another_job_s_finds_the_one_that_is_meant(self, everywhere):
        another = seek("r").sighting
        assert another is not None
        found = seek("d", seen=another.seen).sighting
        assert found is not None
        assert found.jid == "d"

    @pytest.mark.parametrize(
        "seen", ["", "x", "cellar/1~2", "queue:a b/0~x", "dead/x", "worker/nobody"]
    )
    def test_a_wrong_hint_does_no_harm(self, everywhere, seen):
        assert seek("d", seen=seen)

    def test_what_is_no_job_has_a_name_and_is_found(self, redis_client):
        redis_client.zadd(DEAD, {"{broken": 5})
        (entry,) = AllJobs().heads().entries
        found = seek(entry.jid).sighting
        assert found is not None
        assert found.record.unparseable

    def test_a_worker_s_job_cannot_be_moved(self, everywhere):
        seen = seek("w").sighting
        assert seen is not None
        (verdict,) = AllJobs().act([seen], Action("delete"))
        assert (verdict.outcome, verdict.reason) == ("refused", "a worker has it")

    def test_no_jid_is_refused(self, redis_client):
        with pytest.raises(InvalidQuery):
            seek("")


class TestTracked:
    """One look at the status tells where to look, whatever else lies there."""

    def trips(self, jid: str) -> int:
        with counted() as trips:
            assert seek(jid, budget=5)
        return trips.number

    def test_is_found_where_its_status_says(self, redis_client):
        job = Append.set(track=True, on_commit=False)
        queued_one = job.perform_async("a")
        due = job.perform_in(3_600, "b")
        dead = job.perform_in(1_800, "c")
        assert queued_one
        assert due
        assert dead
        seen = seek(dead).sighting
        assert seen is not None
        AllJobs().act([seen], Action("kill"))
        before = [self.trips(each) for each in (queued_one, due, dead)]
        put(redis_client, RETRY, *(f"r{each}" for each in range(3_000)))
        put(redis_client, SCHEDULE, *(f"s{each}" for each in range(3_000)))
        put(redis_client, DEAD, *(f"d{each}" for each in range(3_000)), at=100)
        put(redis_client, DEAD, *(f"n{each}" for each in range(3_000)), at=time.time() + 900)
        assert [self.trips(each) for each in (queued_one, due, dead)] == before == [2, 2, 2]

    def test_one_that_has_just_come_to_a_long_queue_is_found_at_once(self, redis_client):
        enqueue(redis_client, *(f"q{each}" for each in range(3_000)))
        last = Append.set(track=True, on_commit=False).perform_async("a") or ""
        assert self.trips(last) == 2
        enqueue(redis_client, *(f"p{each}" for each in range(300)))
        found = seek(last)
        assert found.sighting is not None
        assert found.sighting.record.far == 3_000

    def test_one_that_is_over_is_not_looked_for(self, redis_client):
        redis_client.hset("cogworker:status:j", mapping={"state": "complete", "class": "a.B"})
        put(redis_client, RETRY, "r")
        found = seek("j")
        assert (found.state, found.looked_at, bool(found)) == ("complete", 0, False)

    def test_one_that_is_not_where_its_status_says_is_looked_for(self, redis_client):
        redis_client.hset("cogworker:status:d", mapping={"state": "queued", "class": "a.B"})
        put(redis_client, DEAD, "d")
        found = seek("d")
        assert found.sighting is not None
        assert (found.sighting.place, found.state) == ("dead", "queued")


class TestExplain:
    def test_who_has_the_job_need_not_have_it_looked_for(self, redis_client):
        put(redis_client, RETRY, *(f"r{each}" for each in range(500)), at=time.time() + 600)
        (seen,) = AllJobs().search(jid="r499").entries
        found = explain(seen)
        assert (found.jid, found.state, found.codes[0]) == ("r499", "retrying", "not_due")
        assert found.codes == explain("r499").codes
        assert found.looked_at == 0

    def test_in_each_place(self, everywhere):
        for jid, state in zip("rsdq", ["retrying", "scheduled", "dead", "queued"], strict=True):
            seen = seek(jid).sighting
            assert seen is not None
            assert explain(seen).state == state
            assert explain(seen).codes == explain(jid).codes


class TestAttempts:
    def test_the_newest_first_with_their_tracebacks(self, redis_client):
        for number in range(1, 31):
            try:
                raise KeyError(f"no {number}")
            except KeyError as error:
                job = {"retry_count": number}
                record = attempt_record(job, error, "retrying", 100.0 + number)
                redis_client.rpush("cogworker:job_attempts:j", record)
        with counted() as trips:
            found = attempts("j")
        assert trips.number == 1
        assert [each.attempt for each in found] == list(range(30, 5, -1))
        first = found[0]
        assert (first.failed_at, first.outcome) == (130.0, "retrying")
        assert (first.error_class, first.error_message) == ("KeyError", "'no 30'")
        assert "test_everywhere.py" in first.traceback

    def test_what_is_none_is_left_out(self, redis_client):
        good = {"attempt": 1, "failed_at": 5, "outcome": "dead", "error_class": "E"}
        good |= {"error_message": "m"}
        for line in ("x", "[]", "{}", json.dumps({**good, "traceback": "%"}), json.dumps(good)):
            redis_client.rpush("cogworker:job_attempts:j", line)
        assert [each.traceback for each in attempts("j")] == [""]
        assert attempts("nobody") == []
        with pytest.raises(InvalidQuery):
            attempts("")

    def test_a_deletion_takes_them_along(self, everywhere):
        everywhere.rpush("cogworker:job_attempts:r", "x")
        seen = seek("r").sighting
        assert seen is not None
        AllJobs().act([seen], Action("delete"))
        assert everywhere.exists("cogworker:job_attempts:r") == 0
        assert (in_set(everywhere, RETRY), queued(everywhere)) == ([], ["q"])
        assert jids(list(RetrySet())) == []
