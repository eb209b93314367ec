"""`runworker --reload`: the code of a project is edited while its worker runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from django_cogworker.client import push
from tests.process.supervising import living, wait_for_workers
from tests.project.jobs import Wait
from tests.support.project import Journal
from tests.support.site import JOBS, ManageProcess, Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def worker(site: Site) -> ManageProcess:
    """One that reloads by default, since `DEBUG` is on. Its files are seen: an edit will be noticed."""
    return started(site)


def started(site: Site, *args: str) -> ManageProcess:
    process = site.start("runworker", "-c", "2", *args)
    process.wait_for_line("Watching the files", timeout=40)
    return process


def check_all_is_over(site: Site, worker: ManageProcess) -> None:
    assert worker.wait(40) == 0
    wait_until(lambda: not site.processes(), message=lambda: str(site.processes()))


def test_new_code_is_loaded_when_the_running_job_has_ended(site, journal, board, worker):
    """DT-8"""
    (old,) = living()
    Wait.perform_async("a")
    journal.wait_for("started a")
    site.says("two")
    worker.wait_for_line(r"things/jobs\.py has changed: running jobs end")
    worker.wait_for_line("Waiting up to")  # from here on it fetches nothing
    site.ask()
    assert living() == {old}
    journal.release("a")
    assert journal.wait_for("two", timeout=40) == ["started a", "finished a", "two"]
    (new,) = living()
    assert new not in (old, worker.pid)
    # And once more: a reload is not the last one.
    seen = len(worker.lines)
    worker.wait_for_line("Watching the files", after=seen - 5, timeout=40)
    site.says("three")
    worker.wait_for_line(r"has ended \(reloaded\)", after=seen, timeout=40)
    site.ask()
    journal.wait_for("three", timeout=40)
    board.wait_until_settled()
    assert board.failed == 0
    worker.signal(signal.SIGTERM)
    check_all_is_over(site, worker)


def test_a_job_that_does_not_end_in_time_goes_back_and_runs_with_the_new_code(site, journal):
    site.settings(COGWORKER_SHUTDOWN_TIMEOUT=0.5)
    worker = started(site)
    Wait.perform_async("a")
    journal.wait_for("started a")
    site.says("two")
    journal.wait_for("started a", times=2, timeout=40)
    journal.release("a")
    journal.wait_for("finished a")
    assert journal.count("started a") == 2
    worker.signal(signal.SIGTERM)
    check_all_is_over(site, worker)


@pytest.mark.parametrize(
    ("path", "broken", "whole"),
    [
        ("things/jobs.py", "class Say(:\n", None),
        ("things/jobs.py", "import things.later\n" + JOBS.format(word="one"), "things/later.py"),
        ("site_settings.py", "import nowhere\n", None),
    ],
    ids=["syntax", "import", "settings"],
)
def test_code_that_does_not_start_is_waited_for(site, journal, worker, path, broken, whole):
    """Also where it is mended by a file that was never loaded."""
    mended = "" if whole else (site.folder / path).read_text()
    site.write(path, broken)
    worker.wait_for_line("does not start, and only the next change of a file brings", timeout=40)
    assert worker.alive
    assert len(site.processes()) == 1
    site.ask()
    site.write(whole or path, mended)
    journal.wait_for("one", timeout=40)
    assert worker.output.count("was lost") == 1
    worker.signal(signal.SIGTERM)
    check_all_is_over(site, worker)


def interrupt_all(worker: ManageProcess) -> None:
    """Ctrl-C in a terminal reaches the whole group."""
    os.killpg(worker.pid, signal.SIGINT)


def terminate(worker: ManageProcess) -> None:
    worker.signal(signal.SIGTERM)


@pytest.mark.parametrize("stop", [interrupt_all, terminate])
def test_a_stop_waits_for_the_running_job_and_leaves_no_process(
    site: Site, journal: Journal, worker: ManageProcess, stop: Callable[[ManageProcess], None]
):
    Wait.perform_async("a")
    journal.wait_for("started a")
    stop(worker)
    worker.wait_for_line("Stopping")
    assert worker.alive
    journal.release("a")
    check_all_is_over(site, worker)
    assert journal.lines() == ["started a", "finished a"]
    assert "Traceback" not in worker.output


def test_a_worker_that_is_asked_to_stop_is_replaced(site, journal, worker):
    (child,) = living()
    Wait.perform_async("a")
    journal.wait_for("started a")
    os.kill(child, signal.SIGTERM)
    worker.wait_for_line("Stopping")
    journal.release("a")
    wait_for_workers(1, other_than={child})
    site.ask()
    assert journal.wait_for("one") == ["started a", "finished a", "one"]
    worker.signal(signal.SIGTERM)
    check_all_is_over(site, worker)


def test_a_killed_worker_is_replaced_and_its_job_runs_again(site, journal, worker):
    (child,) = living()
    Wait.perform_async("a")
    journal.wait_for("started a")
    os.kill(child, signal.SIGKILL)
    journal.wait_for("started a", times=2, timeout=40)
    journal.release("a")
    journal.wait_for("finished a")
    assert wait_for_workers(1, other_than={child})
    worker.signal(signal.SIGTERM)
    check_all_is_over(site, worker)


def test_a_killed_parent_takes_the_worker_along_in_good_order(site, journal, worker):
    Wait.perform_async("a")
    journal.wait_for("started a")
    worker.kill()
    worker.wait_for_line("is gone; this worker stops too")
    journal.release("a")
    journal.wait_for("finished a")
    wait_until(lambda: not site.processes(), timeout=30)
    assert living() == set()


def test_a_thread_of_a_job_does_not_hold_up_new_code(site, journal):
    """Daemon threads end with the worker; one that would keep the process from ending is killed with it."""
    site.write(
        "things/more.py",
        "import threading\n"
        "from django_cogworker import Job\n"
        "class Threads(Job):\n"
        "    def perform(self):\n"
        "        for daemon in (True, False):\n"
        "            threading.Thread(target=threading.Event().wait, daemon=daemon).start()\n",
    )
    site.write(
        "things/jobs.py", (site.folder / "things/jobs.py").read_text() + "import things.more\n"
    )
    worker = started(site)
    push({"class": "things.more.Threads", "args": []})
    worker.wait_for_line("Threads .* finished")
    site.says("two")
    worker.wait_for_line("does not stop; it is killed", timeout=40)
    site.ask()
    journal.wait_for("two", timeout=40)
    worker.signal(signal.SIGTERM)
    check_all_is_over(site, worker)


@pytest.mark.parametrize("args", [["--noreload"], ["--burst"], ["--processes", "2"]])
def test_what_does_not_reload_though_debug_is_on(site, args):
    worker = site.start("runworker", "-c", "1", *args)
    worker.wait_for_line("works as", timeout=40)
    assert "reloads it when files change" not in worker.output
    # A burst worker ends by itself, and a signal may come when it no longer listens.
    assert (worker.wait(40) if "--burst" in args else worker.stop()) == 0
    assert "Watching the files" not in worker.output


def test_without_debug_only_who_asks_for_it_gets_it(site):
    site.settings(DEBUG=False)
    plain = site.start("runworker", "-c", "1")
    plain.wait_for_line("works as", timeout=40)
    assert living() == {plain.pid}
    assert plain.stop() == 0
    asked = started(site, "--reload")
    assert living() != {asked.pid}
    asked.signal(signal.SIGTERM)
    check_all_is_over(site, asked)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--reload", "--processes", "2"], "--reload and --processes exclude each other"),
        (["--reload", "--burst"], "--reload and --burst exclude each other"),
        (["--reload"], "called by a command line of its own"),
    ],
)
def test_where_reloading_makes_no_sense_it_is_refused(redis_url, args, text):
    with pytest.raises(CommandError, match=text):
        call_command("runworker", *args)
