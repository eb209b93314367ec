"""The ledger finds what is wrong: made-up journals, each with one fault. A check that cannot fail is
a defect.
"""

from __future__ import annotations

import pytest

from tests.chaos.ledger import Verdict, judge
from tests.chaos.records import (
    Burial,
    Disturbance,
    Grave,
    Life,
    Push,
    Records,
    Run,
    read_pushes,
    read_runs,
)

ORPHANED = "django_cogworker.exceptions.JobOrphanedError"


class Book:
    """Makes records: one worker `1` that lives from 0 to the end, one job `a` that was accepted."""

    def __init__(self, kind: str = "work", outcome: str = "accepted") -> None:
        self.records = Records(lives=[Life(1, "direct", 0, 1000), Life(2, "supervised", 0, 1000)])
        self.push("a", kind, outcome)

    def push(self, name: str, kind: str = "work", outcome: str = "accepted") -> Book:
        jid = name if outcome == "accepted" else ""
        self.records.pushes[name] = Push(name, kind, outcome, jid)  # type: ignore[arg-type]
        return self

    def run(
        self,
        start: float,
        end: float | None,
        good: bool = True,
        pid: int = 1,
        attempt: int = 1,
        name: str = "a",
        jid: str | None = None,
    ) -> Book:
        number = f"{name}{len(self.records.runs)}"
        self.records.runs.append(
            Run(number, name, pid, attempt, jid or name, start, end, good and end is not None)
        )
        return self

    def dead(self, error: str = "tests.chaos.jobs.Planned", name: str = "a") -> Book:
        self.records.graves.append(Grave(name, error, ""))
        return self

    def died(self, at: float, pid: int = 1) -> Book:
        life = self.records.lives[pid - 1]
        life.last_alive, life.dead = at, at + 0.02
        return self

    def stopped(self, at: float) -> Book:
        self.records.lives[0].stopped = at
        return self

    def buried(self, at: float, pid: int = 1) -> Book:
        self.records.burials.append(Burial(pid, at - 0.2, at))
        return self

    def disturbed(self, begin: float, end: float, slot: str = "", pid: int = 0) -> Book:
        self.records.disturbances.append(Disturbance("made up", slot, pid, begin, end, 1.0))
        return self

    def judge(self) -> Verdict:
        return judge(self.records)

    def problems(self) -> list[str]:
        return [each.what for each in self.judge().problems]


def test_good_books():
    verdict = (
        Book().run(10, 11).push("b", "doomed").run(12, 13, False, name="b").dead(name="b").judge()
    )
    assert verdict.problems == []
    assert verdict.counts["jobs"] == 2
    assert verdict.counts["finished"] == verdict.counts["dead"] == 1
    assert verdict.counts["lost"] == verdict.doubles.total() == 0


# -- lost


@pytest.mark.parametrize(
    "book",
    [
        Book(),
        Book().run(10, None).died(10.5),
        Book().run(10, 11, False),
        Book().run(10, 11, False).run(12, None, attempt=2),
    ],
    ids=["never run", "died with its worker", "failed and gone", "retry died"],
)
def test_a_lost_job(book):
    assert "LOST" in book.problems()
    assert book.judge().counts["lost"] == 1


def test_an_open_answer_may_mean_either():
    assert Book(outcome="maybe").problems() == []
    verdict = Book(outcome="maybe").run(10, 11).judge()
    assert verdict.problems == []
    assert verdict.counts["maybe, and there"] == verdict.counts["jobs"] == 1


def test_an_open_answer_that_began_must_end():
    assert Book(outcome="maybe").run(10, None).died(11).problems() == ["LOST"]


def test_a_refused_job_must_not_be_there():
    assert Book(outcome="refused").problems() == []
    assert Book(outcome="refused").run(10, 11).problems() == ["refused, and there all the same"]


def test_what_nobody_pushed():
    assert Book().run(10, 11).run(12, 13, name="ghost").problems() == [
        "run or dead, though never pushed"
    ]


def test_another_jid():
    assert Book().run(10, 11, jid="other").problems() == ["run under another jid"]


# -- double runs


def test_a_second_run_after_success_is_forbidden():
    book = Book().run(10, 11).run(12, 13)
    assert book.problems() == ["run twice without a reason"]
    assert book.judge().doubles["FORBIDDEN"] == 1


def test_two_runs_side_by_side_are_forbidden():
    assert Book().run(10, 15).run(11, 16, pid=2).problems() == ["run twice without a reason"]


def test_a_retry_is_no_double():
    verdict = Book().run(10, 11, False).run(12, 13, attempt=2).judge()
    assert verdict.problems == []
    assert verdict.counts["retries"] == 1


def test_a_retry_after_success_is_forbidden():
    assert Book().run(10, 11).run(12, 13, attempt=2).problems() == ["run twice without a reason"]


def test_an_attempt_must_not_be_skipped():
    assert Book().run(10, 11, False).run(12, 13, attempt=3).problems() == [
        "run twice without a reason"
    ]


def test_the_worker_died_while_it_ran():
    verdict = Book().run(10, None).died(11).run(12, 13, pid=2).judge()
    assert verdict.problems == []
    assert dict(verdict.doubles) == {"its worker died while it ran": 1}


def test_the_worker_died_only_after_the_second_start():
    assert Book().run(10, None).run(12, 13, pid=2).died(14).problems() == [
        "run twice without a reason"
    ]


def test_the_worker_died_just_after_the_end():
    verdict = Book().run(10, 11).died(11.5).run(12, 13, pid=2).judge()
    assert dict(verdict.doubles) == {"its worker died before Redis knew of the end": 1}


def test_the_worker_died_long_after_the_end():
    assert Book().run(10, 11).died(20).run(22, 23, pid=2).problems() == [
        "run twice without a reason"
    ]


def test_the_worker_could_not_tell_redis_of_the_end():
    book = Book().run(10, 11).died(20).run(22, 23, pid=2).disturbed(11.5, 19.5)
    assert book.problems() == []


def test_the_disturbance_of_another_is_no_reason():
    book = Book().run(10, 11).died(20).run(22, 23, pid=2).disturbed(11.5, 19.5, slot="proxied")
    assert book.problems() == ["run twice without a reason"]


def test_a_disturbance_that_was_over_is_no_reason():
    book = Book().run(10, 11).died(20).run(22, 23, pid=2).disturbed(11.5, 14)
    assert book.problems() == ["run twice without a reason"]


def test_a_silent_worker_was_taken_for_dead():
    book = Book().run(10, 22).buried(18).run(19, 20, pid=2).disturbed(11, 21, pid=1)
    verdict = book.judge()
    assert verdict.problems == []
    assert dict(verdict.doubles) == {"its worker was taken for dead while it ran": 1}
    assert verdict.counts["workers buried, alive but silent"] == 1


def test_a_living_worker_must_not_be_buried():
    assert "living worker buried" in Book().run(10, 11).buried(18).problems()


def test_a_short_silence_is_no_reason_to_bury():
    book = Book().run(10, 11).disturbed(16, 17, pid=1).buried(18)
    assert "living worker buried" in book.problems()


def test_an_outage_for_all_buries_nobody():
    assert "living worker buried" in Book().run(10, 11).disturbed(11, 19).buried(20).problems()


def test_a_stop_interrupts():
    verdict = Book().run(10, None).stopped(11).died(12.2).run(12.1, 13, pid=2).judge()
    assert verdict.problems == []
    assert dict(verdict.doubles) == {"interrupted by a stop": 1}


def test_a_stop_gives_its_time_first():
    assert Book().run(10, None).stopped(11).run(11.3, 13, pid=2).problems() == [
        "run twice without a reason"
    ]


# -- at most once


def test_at_most_once_is_never_started_twice():
    book = Book("shot").run(10, None).died(11).run(12, 13, pid=2)
    assert book.problems() == ["at most once, and started twice"]


def test_at_most_once_dies_with_its_worker():
    assert Book("shot").run(10, None).died(11).dead(ORPHANED).problems() == []
    assert Book("shot").run(10, 11).dead(ORPHANED).problems() == ["buried, though its worker lived"]


# -- the dead


def test_work_must_not_be_dead():
    assert Book().run(10, 11).dead().problems() == ["dead without a reason"]
    assert Book("flaky").run(10, 11, False).dead().problems() == ["dead without a reason"]


def test_dead_twice():
    assert Book("doomed").run(10, 11, False).dead().dead().problems() == ["dead more than once"]


def lives_of_a_suspect(number: int) -> Book:
    """A job that was running when each of so many workers died."""
    book = Book("killer")
    book.records.lives = []
    for pid in range(1, number + 1):
        book.records.lives.append(Life(pid, "direct", pid * 10.0, pid * 10 + 2.0, pid * 10 + 2.1))
        book.run(pid * 10 + 1.0, None, pid=pid)
    return book


def test_a_killer_is_buried_after_four_deaths():
    assert lives_of_a_suspect(4).dead(ORPHANED).problems() == []
    assert lives_of_a_suspect(5).dead(ORPHANED).problems() == ["killer not buried as it should"]
    assert lives_of_a_suspect(4).dead("Other").problems() == ["killer not buried as it should"]


def test_an_innocent_must_not_be_buried():
    book = lives_of_a_suspect(3).dead(ORPHANED)
    book.records.pushes["a"].kind = "work"
    assert book.problems() == ["innocent buried"]


# -- what was written


def test_runs_are_read():
    lines = [
        "start 1.5 r1 p1 77 1 aa",
        "start 2.0 r2 p1 78 2 aa",
        "end 2.5 r1 failed",
        "end 3.0 r2 ok",
        "start 4.0 r3 p2 77 1 bb",
    ]
    runs = read_runs(lines)
    assert [(each.name, each.pid, each.start, each.end, each.good) for each in runs] == [
        ("p1", 77, 1.5, 2.5, False),
        ("p1", 78, 2.0, 3.0, True),
        ("p2", 77, 4.0, None, False),
    ]


def test_pushes_are_read():
    lines = ["push p1 work", "accepted p1 aa", "push p2 shot", "refused p2 -", "push p3 work"]
    pushes = read_pushes(lines)
    assert [(each.kind, each.outcome, each.jid) for each in pushes.values()] == [
        ("work", "accepted", "aa"),
        ("shot", "refused", ""),
        ("work", "maybe", ""),
    ]
