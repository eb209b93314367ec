"""`COGWORKER_RUNSERVER`: a web server of development with a worker beside it."""

from __future__ import annotations

import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.process.supervising import living, wait_for_workers
from tests.project.jobs import Wait
from tests.support.needs import need_module
from tests.support.redis_server import free_port
from tests.support.site import ManageProcess, Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

#: What its processes are known by.
WORKER, SERVER = "runcogworker", "runserver"


def serve(site: Site, *args: str, port: int | None = None) -> ManageProcess:
    """A web server that answers, with a worker that works."""
    port = port or free_port()
    process = site.start(SERVER, f"127.0.0.1:{port}", *args)
    process.wait_for_line("works as", timeout=40)
    wait_until(lambda: answers(port), timeout=40, message=lambda: process.output)
    return process


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/admin/login/", timeout=10) as page:
            return b"csrf" in page.read()
    except OSError:
        return False


def wait_for_the_end(site: Site) -> None:
    wait_until(
        lambda: not site.processes(), timeout=40, message=lambda: str(list(site.processes()))
    )


@pytest.mark.parametrize("kind", ["plain", "staticfiles", "daphne"])
@pytest.mark.parametrize("reload", [True, False], ids=["reload", "noreload"])
def test_it_brings_one_worker_and_takes_it_along(site, journal, kind, reload):
    apps = {"plain": [], "staticfiles": [], "daphne": ["daphne"]}[kind]
    if kind == "daphne":
        need_module("daphne")
    site.settings(*apps, COGWORKER_RUNSERVER=True)
    if kind == "plain":
        path, text = "site_settings.py", (site.folder / "site_settings.py").read_text()
        site.write(path, text + "INSTALLED_APPS.remove('django.contrib.staticfiles')\n")
    server = serve(site, *([] if reload else ["--noreload"]))
    site.ask()
    journal.wait_for("one")
    assert len(living()) == 1
    # With reloading there are two of each, the one that stays and the one that is replaced.
    assert len(site.processes(WORKER)) == len(site.processes(SERVER)) == (2 if reload else 1)
    server.signal(signal.SIGTERM)
    assert server.wait(40) == (0 if reload or kind == "daphne" else -signal.SIGTERM)
    wait_for_the_end(site)
    assert living() == set()


def test_both_reload_and_there_is_still_one_worker(site, journal):
    site.settings(COGWORKER_RUNSERVER=True)
    server = serve(site)
    server.wait_for_line("Watching the files", timeout=40)
    before, processes = living(), set(site.processes())
    site.says("two")
    server.wait_for_line(r"has changed: running jobs end", timeout=40)
    wait_for_workers(1, other_than=before)
    wait_until(lambda: len(set(site.processes()) - processes) == 2, timeout=40)
    site.ask()
    journal.wait_for("two", timeout=40)
    assert len(site.processes(WORKER)) == len(site.processes(SERVER)) == 2
    server.signal(signal.SIGTERM)
    wait_for_the_end(site)


def by_interrupt(server: ManageProcess, site: Site) -> None:
    os.killpg(server.pid, signal.SIGINT)


def by_kill(server: ManageProcess, site: Site) -> None:
    server.kill()


def by_kill_of_the_child(server: ManageProcess, site: Site) -> None:
    (child,) = site.processes(SERVER).keys() - {server.pid}
    os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    ("end", "reload"),
    [
        (by_interrupt, True),
        (by_interrupt, False),
        (by_kill, True),
        (by_kill, False),
        (by_kill_of_the_child, True),
    ],
)
def test_however_it_ends_the_running_job_ends_and_the_worker_is_gone(
    site: Site, journal, board, end: Callable[[ManageProcess, Site], None], reload: bool
):
    site.settings(COGWORKER_RUNSERVER=True)
    server = serve(site, *([] if reload else ["--noreload"]))
    Wait.perform_async("a")
    journal.wait_for("started a")
    end(server, site)
    # Whoever heard the interrupt itself as well has been asked twice by now, and would not wait.
    server.wait_for_line("its worker stops too", timeout=40)
    server.wait_for_line("Stopping", timeout=40)
    until = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > until)
    assert board.in_progress() == 1
    journal.release("a")
    journal.wait_for("finished a")
    wait_until(lambda: not site.processes(WORKER), timeout=40)
    assert board.queue() == []
    assert journal.lines() == ["started a", "finished a"]
    board.wait_until_settled()
    assert living() == set()
    if end is not by_kill:  # then the server's own child goes on, as Django's does
        wait_for_the_end(site)


def test_a_second_interrupt_waits_for_no_job(site, journal, board):
    site.settings(COGWORKER_RUNSERVER=True)
    server = serve(site, "--noreload")
    Wait.perform_async("a")
    journal.wait_for("started a")
    by_interrupt(server, site)
    server.wait_for_line("Stopping", timeout=40)
    by_interrupt(server, site)
    wait_for_the_end(site)
    assert len(board.queue()) == 1
    assert journal.lines() == ["started a"]


def test_a_server_that_gets_no_port_leaves_no_worker(site):
    site.settings(COGWORKER_RUNSERVER=True)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        server = site.start(SERVER, f"127.0.0.1:{taken.getsockname()[1]}", "--noreload")
        server.wait_for_line("already in use", timeout=40)
        wait_for_the_end(site)


def test_a_worker_that_ended_is_missed(site):
    site.settings(COGWORKER_RUNSERVER=True)
    server = serve(site, "--noreload")
    (pid,) = living()
    os.kill(pid, signal.SIGKILL)
    server.wait_for_line(r"The worker has ended \(status -9\)")
    assert server.alive


def test_nobody_else_brings_one(site):
    """Not without the setting, not for a help text, and not for a server of tests."""
    port = free_port()
    without = site.start(SERVER, f"127.0.0.1:{port}", "--noreload")
    wait_until(lambda: answers(port), timeout=40)
    site.settings(COGWORKER_RUNSERVER=True)
    helped = site.start(SERVER, "--help")
    assert helped.wait(40) == 0
    port = free_port()
    site.write("nothing.json", "[]")
    tested = site.start(
        "testserver", "nothing.json", "--noinput", "--addrport", f"127.0.0.1:{port}"
    )
    wait_until(lambda: answers(port), timeout=40, message=lambda: tested.output)
    assert site.processes(WORKER) == {}
    for process in (without, helped, tested):
        assert "works as" not in process.output
