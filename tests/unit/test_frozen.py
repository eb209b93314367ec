"""The frozen clock: what is due runs in order, in the time of the clock, with no second of waiting."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import functools
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.test import TestCase, override_settings
from django.utils import timezone

from django_cogworker import DISCARD, KILL, Job, job
from django_cogworker.api import status
from django_cogworker.exceptions import ConfigurationError, TestModeError, UnknownPeriodicEntry
from django_cogworker.signals import job_died, job_failed, job_finished, job_started
from django_cogworker.testing import Jobs, clear_all, collect, disabled, drain_all, fake, frozen
from tests.support.needs import need_module

PARIS = ZoneInfo("Europe/Paris")
DAY = "2026-05-04"

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with collect() as collected:
        yield collected


class Note(Job):
    def perform(self, *args: Any) -> None:
        done.append(args[0] if len(args) == 1 else args)


class Flaky(Job, retry=3):
    """Fails so many times."""

    def perform(self, times: int) -> str:
        done.append(self.attempt)
        if self.attempt <= times:
            raise ValueError(f"attempt {self.attempt}")
        return "at last"


class Hopeless(Job, retry=2):
    @classmethod
    def retry_in(cls, count: int) -> float:
        return 60 * (count + 1)

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any], error: BaseException) -> None:
        done.append(("exhausted", payload["jid"], str(error)))

    def perform(self) -> None:
        raise ValueError(f"attempt {self.attempt}")


class Deciding(Job):
    @classmethod
    def retry_in(cls, count: int, error: BaseException) -> Any:
        return {"kill": KILL, "discard": DISCARD}[str(error)]

    def perform(self, what: str) -> None:
        raise ValueError(what)


class Chain(Job):
    def perform(self, left: int) -> None:
        done.append(left)
        if left:
            Chain.perform_in(600, left - 1)


class Forever(Job):
    def perform(self) -> None:
        Forever.perform_async()


class Code(Job, expires_in=60):
    def perform(self) -> None:
        done.append("sent")


class Single(Job, unique="until_executed", unique_ttl=3600, retry=5):
    @classmethod
    def retry_in(cls) -> float:
        return 7200

    def perform(self, name: str, fails: bool = False) -> None:
        done.append(name)
        if fails and self.attempt == 1:
            raise ValueError("once")


class Followed(Job, track=True, result_ttl=600, retry=1):
    def perform(self, fails: bool) -> int:
        if fails:
            raise ValueError("of the job")
        return 7


class Nightly(Job, retry=0):
    def perform(self) -> None:
        done.append(("nightly", self.payload["slot"]))


class Slow(Job):
    def perform(self) -> None:
        done.append(("slow", self.payload["slot"]))
        if self.attempt == 1:
            raise ValueError("first")

    @classmethod
    def retry_in(cls) -> float:
        return 100


@job
def function(value: int) -> int:
    return value * 2


def at(text: str, zone: dt.tzinfo = dt.UTC) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=zone)


def times(ran: list[Any]) -> list[str]:
    return [f"{each.at:%H:%M}" for each in ran]


# -- due jobs


def test_all_that_is_due_runs_in_order_at_its_time(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        Note.perform_in(3600, "third")
        Note.perform_at(at(f"{DAY} 10:30"), "second")
        Note.perform_async("first")
        Note.perform_in(7201, "too late")
        function.perform_in(60, 4)
        ran = clock.tick(hours=2)
        assert done == ["first", "second", "third"]
        assert times(ran) == ["10:00", "10:01", "10:30", "11:00"]
        assert [each.job_class for each in ran] == [Note, function, Note, Note]
        assert ran[1].result == 8
        assert ran[1].outcome == "finished"
        assert ran[1].args == (4,)
        assert clock.now == at(f"{DAY} 12:00")
        assert [each["args"] for each in jobs.scheduled] == [["too late"]]
        assert times(clock.tick(dt.timedelta(seconds=1))) == ["12:00"]
        assert clock.tick(3600) == []


def test_jobs_are_made_in_the_time_of_the_clock_and_see_it_go_on(jobs):
    with jobs.frozen(f"{DAY} 10:00", tz="Europe/Paris") as clock:
        Chain.perform_async(3)
        (payload,) = jobs.waiting
        assert (
            payload["created_at"] == payload["enqueued_at"] == at(f"{DAY} 10:00", PARIS).timestamp()
        )
        jobs.assert_enqueued(Chain, args=[3])
        ran = clock.move_to(f"{DAY} 11:00")
    assert times(ran) == ["10:00", "10:10", "10:20", "10:30"]
    assert done == [3, 2, 1, 0]


def test_what_is_due_at_one_time_goes_by_priority(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        for priority in (0, -5, 9):
            Note.set(priority=priority).perform_async(priority)
        clock.run_due()
    assert done == [9, 0, -5]


def test_a_job_that_enqueues_itself_for_ever_is_named(jobs):
    with jobs.frozen(DAY) as clock:
        Forever.perform_async()
        with pytest.raises(TestModeError, match=r"Forever\(\) finished: does it enqueue itself"):
            clock.run_due()


class InsideTestCase(TestCase):
    """Whose transaction never commits."""

    def test_jobs_that_wait_for_a_commit_run_too(self) -> None:
        with collect() as jobs, jobs.frozen(DAY) as clock, transaction.atomic():
            Note.perform_async(1)
            Note.perform_in(60, 2)
            assert times(clock.tick(minutes=2)) == ["00:00", "00:01"]
        assert done == [1, 2]


async def _in_a_coroutine(jobs: Jobs) -> list[int]:
    with jobs.frozen(DAY) as clock:
        await Note.aperform_in(60, 1)
        counts = [len(await clock.arun_due()), len(await clock.atick(minutes=1))]
        await Note.aperform_async(2)
        return [*counts, len(await clock.amove_to("2026-05-05"))]


def test_twins_for_coroutines(jobs):
    assert asyncio.run(_in_a_coroutine(jobs)) == [0, 1, 1]


def test_what_was_enqueued_before_the_clock_stood_is_due(jobs):
    Note.perform_async("before")
    Note.perform_in(60, "later")
    with jobs.frozen("2020-01-01 10:00") as clock:
        jobs.pause("slow")
        Note.set(queue="slow").perform_async("paused")
        clock.tick(hours=1)
        assert done == ["before"]
    assert [each["args"] for each in jobs.scheduled] == [["later"]]


# -- failures


def test_failures_are_attempts_with_their_real_delays(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        jid = Flaky.perform_async(2)
        (ran,) = clock.run_due()
        assert (ran.outcome, ran.attempt, str(ran.error)) == ("retrying", 1, "attempt 1")
        (payload,) = jobs.retrying
        assert payload["jid"] == jid
        assert payload["error_message"] == "attempt 1"
        assert payload["failed_at"] == at(f"{DAY} 10:00").timestamp()
        assert jobs.waiting == []
        assert clock.tick(seconds=15) == []
        # 16 to 74 s, then 31 to 118 s.
        (second,) = clock.tick(seconds=60)
        assert second.attempt == 2
        (third,) = clock.tick(minutes=2)
        assert (third.outcome, third.attempt, third.result) == ("finished", 3, "at last")
        assert jobs.retrying == jobs.dead == []
    assert done == [1, 2, 3]


def hear(heard: list[tuple[str, Any]], name: str, **told: Any) -> None:
    heard.append((name, told.get("outcome")))


def test_after_the_last_attempt_it_is_dead_with_its_hooks_and_signals(jobs):
    heard: list[tuple[str, Any]] = []
    signals = {
        "started": job_started,
        "failed": job_failed,
        "died": job_died,
        "finished": job_finished,
    }
    receivers = {name: functools.partial(hear, heard, name) for name in signals}
    for name, receiver in receivers.items():
        signals[name].connect(receiver, sender=Hopeless)
    with jobs.frozen(f"{DAY} 10:00") as clock:
        jid = Hopeless.perform_async()
        ran = clock.tick(hours=1)
    for name, receiver in receivers.items():
        signals[name].disconnect(receiver, sender=Hopeless)
    assert times(ran) == ["10:00", "10:01", "10:03"]
    assert [each.outcome for each in ran] == ["retrying", "retrying", "dead"]
    assert [each["jid"] for each in jobs.dead] == [jid]
    assert jobs.dead[0]["retry_count"] == 3
    assert done == [("exhausted", jid, "attempt 3")]
    one = [("started", None), ("failed", "retrying")]
    assert heard == [*one, *one, ("started", None), ("failed", "dead"), ("died", None)]


def test_what_retry_in_answers_counts(jobs):
    with jobs.frozen(DAY) as clock:
        Deciding.perform_async("kill")
        Deciding.perform_async("discard")
        assert [each.outcome for each in clock.run_due()] == ["killed", "discarded"]
    assert [each["args"] for each in jobs.dead] == [["kill"]]
    jobs.clear(Deciding)
    assert jobs.dead == []


def test_an_exit_is_a_failure_and_an_interrupt_by_hand_is_not(jobs):
    with jobs.frozen(DAY) as clock:
        Exits.perform_async("SystemExit")
        assert [each.outcome for each in clock.run_due()] == ["dead"]
        Exits.perform_async("KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            clock.run_due()


class Exits(Job, retry=False):
    def perform(self, name: str) -> None:
        raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}[name]


def state(jid: str | None) -> tuple[str, str]:
    found = status(jid or "")
    assert found is not None
    return found.state, found.error_class


def test_the_status_follows(jobs):
    with jobs.frozen(DAY) as clock:
        good, bad = Followed.perform_async(False), Followed.perform_async(True)
        clock.run_due()
        assert state(good) == ("complete", "")
        assert state(bad) == ("retrying", "ValueError")
        clock.tick(minutes=3)
        assert state(bad) == ("dead", "ValueError")


# -- expiry, locks, paused queues


def test_an_expired_job_is_dropped(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        Code.perform_async()
        Code.perform_in(3600)
        clock.tick(seconds=59, down=True)
        assert done == ["sent"]
        ran = clock.tick(hours=2, down=True)
    assert [(each.outcome, each.attempt) for each in ran] == [("expired", 0)]
    assert done == ["sent"]


def test_a_lock_lasts_over_the_retries_and_no_longer(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        assert Single.perform_async("a", True)
        clock.run_due()
        assert [each["args"] for each in jobs.retrying] == [["a", True]]
        clock.tick(minutes=90)
        assert Single.perform_async("a", True) is None
        clock.tick(minutes=31)
        assert done == ["a", "a"]
        assert Single.perform_async("a", True)


def test_a_lock_ends_with_its_ttl(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        jobs.pause("default")
        assert Single.perform_async("a")
        clock.tick(minutes=59)
        assert Single.perform_async("a") is None
        clock.tick(minutes=2)
        assert Single.perform_async("a")


def test_jobs_of_a_paused_queue_wait(jobs):
    with jobs.frozen(f"{DAY} 10:00") as clock:
        jobs.pause("mail")
        Note.set(queue="mail").perform_async("mail")
        Note.perform_async("other")
        clock.tick(hours=1)
        assert done == ["other"]
        jobs.resume("mail")
        assert times(clock.tick(minutes=1)) == ["11:00"]
    assert done == ["other", "mail"]


# -- periodic entries


def nightly(cron: str, **more: Any) -> Any:
    entry = {"job": Nightly.job_name, "cron": cron, **more}
    return override_settings(COGWORKER_PERIODIC={"nightly": entry})


def slots() -> list[str]:
    found = [dt.datetime.fromtimestamp(slot, PARIS) for _, slot in done]
    return [f"{each:%m-%d %H:%M}" for each in found]


@pytest.mark.parametrize(
    ("cron", "begin", "hours", "expected"),
    [
        # 02:30 does not exist: once, right after the gap.
        ("30 2 * * *", "2026-03-29 01:59", 2, ["03-29 03:00"]),
        ("30 2 * * *", "2026-03-29 01:59", 27, ["03-29 03:00", "03-30 02:30"]),
        # 02:30 comes twice: once, the first time.
        ("30 2 * * *", "2026-10-25 01:59", 4, ["10-25 02:30"]),
        # Every real hour.
        ("0 * * * *", "2026-03-29 00:59", 3, ["03-29 01:00", "03-29 03:00", "03-29 04:00"]),
        ("0 * * * *", "2026-10-25 01:59", 3, ["10-25 02:00", "10-25 02:00", "10-25 03:00"]),
        # The moment where the clock begins is past.
        ("0 9 * * *", "2026-05-04 09:00", 25, ["05-05 09:00"]),
    ],
)
def test_periodic_entries_obey_the_rule_for_clock_changes(jobs, cron, begin, hours, expected):
    with nightly(cron, tz="Europe/Paris"), jobs.frozen(begin, tz="Europe/Paris") as clock:
        ran = clock.tick(hours=hours)
        assert [each.at.timestamp() for each in ran] == [slot for _, slot in done]
    assert slots() == expected


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ({}, ["05-04 14:00"]),
        ({"catch_up": "skip"}, []),
        ({"catch_up": "all", "limit": 3}, ["05-04 12:00", "05-04 13:00", "05-04 14:00"]),
    ],
)
def test_after_a_pause_without_workers_catch_up_decides(jobs, catch_up, expected):
    with nightly("0 * * * *", tz="Europe/Paris", **catch_up):
        with jobs.frozen(f"{DAY} 10:30", tz="Europe/Paris") as clock:
            ran = clock.tick(hours=4, down=True)
            assert set(times(ran)) <= {"14:30"}
            assert slots() == expected
            # What comes while a worker is there is no matter of catch_up.
            clock.tick(hours=2)
            assert slots() == [*expected, "05-04 15:00", "05-04 16:00"]


def test_run_at_first_start(jobs):
    with nightly("0 9 * * *", tz="Europe/Paris", run_at_first_start=True):
        with jobs.frozen(f"{DAY} 08:00", tz="Europe/Paris") as clock:
            assert times(clock.run_due()) == ["08:00"]
    assert slots() == ["05-03 09:00"]


def test_entries_are_chosen_by_name(jobs):
    with nightly("* * * * *"):
        for chosen, count in ((True, 2), (["nightly"], 2), ([], 0), (False, 0)):
            with jobs.frozen(DAY, periodic=chosen) as clock:
                assert len(clock.tick(minutes=2)) == count
        with pytest.raises(UnknownPeriodicEntry, match="'nigthly'"):
            with jobs.frozen(DAY, periodic=["nigthly"]):
                pass
        with pytest.raises(TestModeError, match="periodic='nightly'"):
            with jobs.frozen(DAY, periodic="nightly"):
                pass


def test_a_slot_waits_for_the_run_before_it_for_a_while_then_it_is_skipped(jobs):
    entry = {"job": Slow.job_name, "cron": "* * * * *", "unique_run": True}
    with override_settings(COGWORKER_PERIODIC={"slow": entry}):
        with jobs.frozen(f"{DAY} 10:00") as clock:
            ran = clock.tick(minutes=3, seconds=59)
    # The retry of 10:01 ends at 10:02:40: its neighbour of 10:02 was given up at 10:02:15.
    assert [f"{each.at:%H:%M:%S}" for each in ran] == ["10:01:00", "10:02:40", "10:03:00"]
    assert [each.attempt for each in ran] == [1, 2, 1]
    begin = int(at(f"{DAY} 10:00").timestamp())
    assert [slot - begin for _, slot in done] == [60, 60, 180]


def test_periodic_jobs_keep_the_order_of_all(jobs):
    with nightly("*/10 * * * *"), jobs.frozen(f"{DAY} 10:00") as clock:
        Note.perform_in(900, "between")
        clock.tick(minutes=20)
    assert [each if isinstance(each, str) else each[0] for each in done] == [
        "nightly",
        "between",
        "nightly",
    ]


# -- other clocks


@pytest.fixture
def time_machine() -> Any:
    need_module("time_machine")
    return import_module("time_machine")


def test_a_clock_that_others_move_is_seen(jobs, time_machine):
    with time_machine.travel(at(f"{DAY} 10:00"), tick=False) as traveller:
        Note.perform_in(60, 1)
        Hopeless.perform_async()
        assert len(jobs.run_due(errors="record")) == 1
        traveller.shift(61)
        ran = jobs.run_due(errors="record")
        assert [each.job_class for each in ran] == [Note, Hopeless]
        assert ran[0].at == timezone.now()
        Code.perform_async()
        traveller.shift(3600)
        assert jobs.drain(Code) == 0


def test_other_clocks_follow_ours(jobs, time_machine):
    with time_machine.travel(at("2020-01-01"), tick=False) as traveller:
        with jobs.frozen(f"{DAY} 10:00", follow=traveller.move_to) as clock:
            assert timezone.now() == at(f"{DAY} 10:00")
            Asking.perform_in(600)
            clock.tick(hours=1)
            assert done == [at(f"{DAY} 10:10")]
            assert timezone.now() == clock.now == at(f"{DAY} 11:00")


class Asking(Job):
    def perform(self) -> None:
        done.append(timezone.now())


def test_the_clock_is_let_go_after_all(jobs):
    with contextlib.suppress(ZeroDivisionError), jobs.frozen(DAY):
        with jobs.frozen("2030-01-01"):
            pass
        Note.perform_async(1)
        raise ZeroDivisionError
    Note.perform_async(2)
    first, second = (each["created_at"] for each in jobs.waiting)
    assert first == at(DAY).timestamp()
    assert abs(second - timezone.now().timestamp()) < 60


def test_in_any_fake_mode(jobs):
    with fake(), frozen(DAY) as clock:
        Note.perform_async(1)
        assert len(clock.run_due()) == 1
        assert jobs.waiting == []
    with disabled(), pytest.raises(TestModeError, match="frozen works in fake mode only"):
        with frozen(DAY):
            pass
    assert drain_all() == 0
    clear_all()


# -- what cannot be


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("yesterday", "'yesterday' is no moment"),
        (True, "True is no moment"),
        (None, ""),
        ("2026-03-29 02:30", r"does not exist in Europe/Paris.*'2026-03-29T03:30:00\+02:00'"),
    ],
)
def test_moments_that_are_none(jobs, given, said):
    if given is None:
        with jobs.frozen(None) as clock:
            assert abs(clock.timestamp() - timezone.now().timestamp()) < 60
        return
    with pytest.raises(TestModeError, match=said):
        with jobs.frozen(given, tz="Europe/Paris"):
            pass


@pytest.mark.parametrize(
    "given",
    [
        "2026-05-04 00:00",
        "2026-05-03T22:00:00+00:00",
        "2026-05-04",
        dt.date(2026, 5, 4),
        dt.datetime(2026, 5, 4),
        dt.datetime(2026, 5, 4, tzinfo=PARIS),
        dt.datetime(2026, 5, 3, 22, tzinfo=dt.UTC).timestamp(),
    ],
)
def test_moments_that_are_the_same(jobs, given):
    with jobs.frozen(given, tz=PARIS) as clock:
        assert clock.now.isoformat() == "2026-05-04T00:00:00+02:00"


@pytest.mark.parametrize("further", [float("inf"), float("nan"), 1e12, dt.timedelta(days=10**7)])
def test_what_no_calendar_has(jobs, further):
    with jobs.frozen(DAY) as clock:
        with pytest.raises(TestModeError, match="calendar|so long"):
            clock.tick(further)
        if not isinstance(further, dt.timedelta):
            with pytest.raises(TestModeError, match="calendar"):
                clock.move_to(further)
        assert clock.tick(seconds=1) == []


def test_an_entry_that_cannot_be_used_is_an_error_here(jobs, settings):
    """A worker leaves it out, so that the others run; a test is to hear of it."""
    settings.COGWORKER_PERIODIC = {
        "nightly": {"job": Nightly.job_name, "cron": "* * * * *"},
        "broken": {"job": "no.such.Job", "cron": "0 3 * * *"},
    }
    for chosen in (True, ["broken"], ["nightly", "broken"]):
        with pytest.raises(
            (ConfigurationError, UnknownPeriodicEntry), match="no job class named 'no.such.Job'"
        ):
            with jobs.frozen(DAY, periodic=chosen):
                pass
    with pytest.raises(UnknownPeriodicEntry, match="'zzz'. Known: nightly"):
        with jobs.frozen(DAY, periodic=["zzz"]):
            pass
    with jobs.frozen(DAY, periodic=["nightly"]) as clock:
        assert len(clock.tick(minutes=1)) == 1


def test_a_zone_that_is_none_and_a_way_back(jobs):
    with pytest.raises(TestModeError, match="'Europe/Pariss' is no time zone"):
        with jobs.frozen(DAY, tz="Europe/Pariss"):
            pass
    with jobs.frozen(f"{DAY} 10:00") as clock:
        with pytest.raises(TestModeError, match="cannot go back to 2026-05-04 09:00"):
            clock.move_to(f"{DAY} 09:00")
        with pytest.raises(TestModeError, match="cannot go back"):
            clock.tick(hours=-1)
