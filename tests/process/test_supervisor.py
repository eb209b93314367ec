"""The supervisor: several worker processes under one parent. Real processes, really killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from django.core.management import call_command

from django_cogworker.api import ProcessSet, losses
from django_cogworker.worker.supervisor import Supervisor
from tests.oddjobs.jobs import Grow
from tests.process.odd import KEYS, ODD
from tests.process.supervising import (
    check_it_waits_for,
    holder,
    inodes,
    living,
    runs,
    tcp_inodes,
    wait_for_workers,
)
from tests.project.jobs import Append, ExitWorker, KillWorker, Wait
from tests.support.redis_server import free_port
from tests.support.waiting import wait_until

#: The worker starts only while the journal has no file that forbids it.
BOOTING = {"COGWORKER_SERVER_MIDDLEWARE": ["tests.oddjobs.booting.middleware"]}


#: A beat a second: what is asked from outside is heard sooner.
QUICK = {"COGWORKER_ORPHAN_THRESHOLD": 6}


def test_three_processes_share_the_work_and_stop_together(start_worker, journal, board):
    """K158"""
    for name in "abc":
        Wait.perform_async(name)
    supervisor = start_worker("--processes", "3", "-c", "1")
    for name in "abc":
        journal.wait_for(f"started {name}")
    assert len(wait_for_workers(3)) == 3
    for name in "abc":
        journal.release(name)
        journal.wait_for(f"finished {name}")
    assert supervisor.stop() == 0
    assert living() == set()
    board.wait_until_settled()
    assert board.processed == 3


def test_a_killed_child_is_replaced_and_its_job_runs_again_at_once(start_worker, journal, board):
    """G81, CE-4: the supervisor tells the others, so nobody waits for a beat."""
    supervisor = start_worker("--processes", "2", "-c", "1")
    before = wait_for_workers(2)
    Wait.perform_async("a")
    journal.wait_for("started a")
    victim = holder(board)
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    journal.wait_for("started a", times=2)
    assert time.monotonic() - killed < 5
    supervisor.wait_for_line(rf"{victim} .*signal 9")
    assert victim not in wait_for_workers(2, other_than={victim})
    assert len(before & living()) == 1
    wait_until(losses)
    assert [(each["pid"], each["how"]) for each in losses()] == [(victim, "signal 9")]
    journal.release("a")
    journal.wait_for("finished a")
    assert supervisor.stop() == 0


def test_children_stop_when_their_supervisor_is_killed(start_worker, journal, board):
    supervisor = start_worker("--processes", "2", "-c", "1")
    children = wait_for_workers(2)
    Wait.perform_async("a")
    journal.wait_for("started a")
    os.kill(supervisor.pid, signal.SIGKILL)
    journal.release("a")
    journal.wait_for("finished a")
    wait_until(lambda: not any(map(runs, children)), timeout=20)
    board.wait_until_settled()
    assert board.processed == 1
    assert living() == set()


@pytest.mark.timeout(90)
def test_usr2_replaces_one_after_the_other_and_jobs_go_on(start_worker, journal, board):
    supervisor = start_worker("--processes", "3", "-c", "1")
    before = wait_for_workers(3)
    fewest = 3
    supervisor.signal(signal.SIGUSR2)
    sent = 0

    def rolled() -> bool:
        nonlocal fewest, sent
        Append.perform_async(f"n{sent}")
        sent += 1
        now = {pid for pid in before if runs(pid)} | living()
        fewest = min(fewest, len({pid for pid in now if runs(pid)}))
        return "run the new code" in supervisor.output

    wait_until(rolled, timeout=60)
    assert fewest >= 2
    assert len(wait_for_workers(3, other_than=before)) == 3
    for number in range(sent):
        journal.wait_for(f"n{number}")
    assert supervisor.stop() == 0
    assert len(journal.lines()) == sent


def test_a_worker_ends_after_its_number_of_jobs_and_another_takes_over(start_worker, journal):
    """CE-5, TQ-11"""
    supervisor = start_worker("--processes", "2", "-c", "1", "--max-jobs", "3")
    before = wait_for_workers(2)
    Append.perform_bulk([(f"n{number}",) for number in range(20)])
    for number in range(20):
        journal.wait_for(f"n{number}")
    wait_for_workers(2, other_than=before)
    assert supervisor.stop() == 0
    assert len(journal.lines()) == 20


def test_a_single_worker_ends_after_its_number_of_jobs(start_worker, journal):
    for number in range(4):
        Append.perform_async(f"n{number}")
    worker = start_worker("-c", "1", "--max-jobs", "2")
    assert worker.wait(20) == 0
    assert len(journal.lines()) >= 2


def test_the_supervisor_has_no_connection_of_its_own(start_worker, board):
    supervisor = start_worker("--processes", "2", "-c", "1")
    wait_for_workers(2)
    assert inodes(supervisor.pid) & tcp_inodes() == set()
    child = next(iter(living()))
    assert inodes(child) & tcp_inodes() != set()
    assert supervisor.stop() == 0


def test_only_the_workers_miss_a_redis_that_is_away(start_worker):
    supervisor = start_worker(
        "--processes", "2", "-c", "1", url=f"redis://127.0.0.1:{free_port()}/0"
    )
    wait_until(lambda: supervisor.output.count("is away") == 2, timeout=20)
    away = [line.split()[1] for line in supervisor.lines if "is away" in line]
    assert str(supervisor.pid) not in away
    assert supervisor.stop() == 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--processes", "0"), "--processes is 0; it takes a whole number from 1"),
        (("--max-jobs", "0"), "--max-jobs is 0; it takes a whole number from 1"),
        (("--max-memory", "1"), "would be reached at once"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(start_worker, args, text):
    worker = start_worker(*args)
    assert worker.wait(20) == 1
    assert text in worker.output


def test_an_unknown_word_is_logged_and_nothing_else(caplog):
    """K164"""
    supervisor = Supervisor(2, shutdown_timeout=1)
    supervisor._bell.words.append("DANCE")
    with caplog.at_level("WARNING"):
        supervisor._act_on_words()
    supervisor._bell.close()
    assert "DANCE means nothing to a supervisor" in caplog.text
    assert not supervisor._stopping


def test_workers_that_are_programs_of_their_own(start_worker, journal, board):
    """As elsewhere than on Linux: the same life without a fork."""
    supervisor = start_worker("--processes", "2", "-c", "1", "--start-method", "spawn")
    before = wait_for_workers(2)
    supervisor.wait_for_line(r"started \(spawn\)")
    Wait.perform_async("a")
    journal.wait_for("started a")
    victim = holder(board)
    os.kill(victim, signal.SIGKILL)
    journal.wait_for("started a", times=2, timeout=5)
    supervisor.signal(signal.SIGUSR2)
    journal.release("a")
    supervisor.wait_for_line("All 2 workers run the new code", timeout=40)
    wait_for_workers(2, other_than=before)
    assert inodes(supervisor.pid) & tcp_inodes() == set()
    children = living()
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(runs, children)), timeout=20)
    assert board.processed == 1


def test_how_a_worker_died_stands_in_the_record_of_a_buried_job(start_worker, journal, board):
    """CE-4: the reason names the signal or the exit code, also to operators."""
    killer = KillWorker.perform_async("killer", 99)
    supervisor = start_worker("--processes", "2", "-c", "1", conf={"COGWORKER_MAX_ORPHANINGS": 1})
    assert "signal 9" in board.dead(killer)["error_message"]
    assert journal.count("killing killer") == 2
    ExitWorker.perform_async("leaver", 7)
    journal.wait_for("leaver", timeout=20)
    wait_until(
        lambda: [each["how"] for each in losses()] == ["exit code 7", "signal 9", "signal 9"]
    )
    supervisor.wait_for_line(r"ended with exit code 7\)")
    assert 0 < board.client.ttl(KEYS.losses) <= 30 * 86_400
    assert supervisor.stop() == 0


def test_losses_are_shown_to_operators(board, capsys):
    record = '{"pid": 7, "identity": "", "how": "exit code 1", "at": 5.0, "lived": 0.5}'
    board.client.zadd(KEYS.losses, {record: 5})
    call_command("cogworker", "losses")
    assert "exit code 1" in capsys.readouterr().out


def test_a_second_signal_puts_running_jobs_back_at_once(start_worker, journal, board):
    supervisor = start_worker("--processes", "2", "-c", "1")
    for name in "ab":
        Wait.perform_async(name)
        journal.wait_for(f"started {name}")
    wait_for_workers(2)
    supervisor.signal(signal.SIGTERM)
    supervisor.wait_for_line("stopping 2 workers")
    wait_until(lambda: all(each.is_quiet for each in ProcessSet()))
    assert supervisor.alive
    second = time.monotonic()
    supervisor.signal(signal.SIGINT)
    assert supervisor.wait(20) == 0
    assert time.monotonic() - second < 15  # the time-out is 25 s
    assert sorted(each["args"][0] for each in board.queue()) == ["a", "b"]
    assert board.in_progress() == 0


def test_a_worker_that_does_not_stop_is_killed(start_worker, journal, board):
    supervisor = start_worker(
        "--processes", "2", "-c", "1", conf={"COGWORKER_SHUTDOWN_TIMEOUT": 0.5}
    )
    stuck = min(wait_for_workers(2))
    os.kill(stuck, signal.SIGSTOP)
    assert supervisor.stop() == 1
    assert f"Worker {stuck} does not stop; it is killed" in supervisor.output
    assert supervisor.output.count("it is killed") == 1
    assert not runs(stuck)


def test_quiet_and_stacks_are_passed_on(start_worker, journal):
    supervisor = start_worker("--processes", "2", "-c", "1", conf=QUICK)
    wait_for_workers(2)
    supervisor.signal(signal.SIGTTIN)
    # The stacks themselves have the line that logs them.
    wait_until(lambda: supervisor.output.count("django_cogworker: The stacks of all threads") == 2)
    supervisor.signal(signal.SIGTSTP)
    wait_until(lambda: [each.is_quiet for each in ProcessSet()] == [True, True])
    # The replacement of a quiet worker that was lost is quiet too.
    victim = min(living())
    os.kill(victim, signal.SIGKILL)
    wait_for_workers(2, other_than={victim})
    assert [each.is_quiet for each in ProcessSet()] == [True, True]
    Append.perform_async("a")
    for each in ProcessSet():
        each.resume()
    journal.wait_for("a")
    assert supervisor.stop() == 0


def test_a_worker_stopped_from_outside_is_replaced(start_worker, board):
    supervisor = start_worker("--processes", "2", "-c", "1", conf=QUICK)
    chosen = next(iter(ProcessSet())) if wait_for_workers(2) else None
    assert chosen is not None
    assert chosen.stop()
    supervisor.wait_for_line(rf"Worker {chosen.info['pid']} has ended \(stopped\)")
    wait_for_workers(2, other_than={chosen.info["pid"]})
    assert losses() == []
    assert supervisor.stop() == 0


def test_a_burst_ends_when_all_workers_have_ended(start_worker, journal, board):
    Append.perform_bulk([(f"n{number}",) for number in range(40)])
    supervisor = start_worker("--processes", "2", "-c", "1", "--burst", "--max-jobs", "15")
    assert supervisor.wait(30) == 0
    assert len(journal.lines()) == 40
    assert supervisor.output.count("(drained)") == 2
    assert living() == set()


def test_running_jobs_end_before_a_worker_makes_room(start_worker, journal, board):
    """CE-5: `--max-memory` of one worker, with a job that goes on when the limit is reached."""
    Wait.perform_async("long")
    worker = start_worker(
        "-c", "2", "--max-memory", "200", conf={**ODD, "COGWORKER_SHUTDOWN_TIMEOUT": 0.2}
    )
    journal.wait_for("started long")
    assert "memory has grown" not in worker.output
    Grow.perform_async("grown", 250)
    journal.wait_for("grown")
    worker.wait_for_line(r"memory has grown to \d+ MB \(--max-memory\)")
    check_it_waits_for("long", worker, journal)
    assert journal.lines()[-1] == "finished long"
    assert board.processed == 2
    assert len(board.queue()) == 1


def test_the_supervisor_replaces_a_worker_that_has_grown(start_worker, journal, board):
    Grow.perform_async("grown", 250)
    supervisor = start_worker("--processes", "2", "-c", "1", "--max-memory", "200", conf=ODD)
    journal.wait_for("grown")
    ended = int(supervisor.wait_for_line(r"Worker (\d+) has ended \(recycled\)")[1])
    wait_for_workers(2, other_than={ended})
    assert "was lost" not in supervisor.output
    assert losses() == []
    assert supervisor.stop() == 0


def test_workers_that_do_not_start_are_tried_less_and_less_often(start_worker, journal, board):
    """K160, K161 with processes."""
    journal.release("no-boot")
    supervisor = start_worker("--processes", "2", "-c", "1", conf=BOOTING)
    wait_until(lambda: supervisor.output.count("at once another one") == 2, timeout=20)
    wait_until(lambda: supervisor.output.count("in 1 s another one") == 2)
    seen, before = time.monotonic(), supervisor.output.count("started (fork)")
    assert before == 4
    wait_until(lambda: supervisor.output.count("started (fork)") > before)
    assert time.monotonic() - seen > 0.5
    wait_until(lambda: supervisor.output.count("in 2 s another one") == 2)
    (journal.directory / "no-boot").unlink()
    wait_for_workers(2)
    wait_until(lambda: len(losses()) == 6, message=lambda: str(losses()))
    assert {(each["how"], each["identity"]) for each in losses()} == {("exit code 3", "")}
    assert supervisor.stop() == 0


def test_new_code_that_does_not_start_replaces_nobody(start_worker, journal, board):
    supervisor = start_worker("--processes", "2", "-c", "1", conf=BOOTING)
    before = wait_for_workers(2)
    journal.release("no-start")
    supervisor.signal(signal.SIGUSR2)
    supervisor.wait_for_line(r"The new code does not start \(exit code 1\); all go on")
    Append.perform_async("a")
    journal.wait_for("a")
    assert living() == before
    assert supervisor.stop() == 0


@pytest.mark.timeout(90)
def test_new_code_that_crashes_at_its_start_stops_the_replacement(start_worker, journal, board):
    """One of three is gone, the others go on; the next try of good code brings all."""
    supervisor = start_worker("--processes", "3", "-c", "1", conf=BOOTING)
    before = wait_for_workers(3)
    journal.release("no-boot")
    supervisor.signal(signal.SIGUSR2)
    supervisor.wait_for_line(r"does not start \(exit code 3\); .* and 2 workers go on", timeout=30)
    supervisor.wait_for_line("in 1 s another one")
    assert len([pid for pid in before if runs(pid)]) == 2
    Append.perform_async("a")
    journal.wait_for("a")
    (journal.directory / "no-boot").unlink()
    wait_until(lambda: len(living()) == 3, timeout=20)
    # The replacement does not go on by itself, though every place has a worker that is ready.
    until = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > until)
    assert supervisor.output.count("is replaced by one with the new code") == 1
    assert len(living() & before) == 2
    supervisor.signal(signal.SIGUSR2)
    supervisor.wait_for_line("All 3 workers run the new code", timeout=40)
    wait_for_workers(3, other_than=before)
    assert supervisor.stop() == 0


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs smaps_rollup")
def test_forked_workers_share_their_memory(start_worker):
    def memory(pid: int, what: str) -> int:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith(f"{what}:"))

    supervisor = start_worker("--processes", "3", "-c", "1", "--start-method", "fork")
    for pid in wait_for_workers(3):
        # What is its own and its part of what is shared; a copy would have nearly all of it.
        assert memory(pid, "Pss") < 0.7 * memory(pid, "Rss")
    assert supervisor.stop() == 0
