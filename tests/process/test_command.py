"""`manage.py runworker`: its arguments, what it writes, and how it refuses."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from django_cogworker.store.store import get_store
from tests.oddjobs import jobs
from tests.process.odd import KEYS, ODD
from tests.project.jobs import Append, AppendLater, FailOnce, Wait
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until


def test_the_start_line_sums_the_worker_up(start_worker, redis_url):
    worker = start_worker("-q", "critical,3", "-q", "default", "-q", "critical", "-c", "4")
    line = worker.wait_for_line("works as .*").string
    assert "4 processors" in line
    assert "queues critical x4, default (weighted)" in line
    assert f"Redis at {redis_url}." in line
    assert re.search(r"django-cogworker \d+\.\d+", line)
    assert "basic mode" not in line
    assert worker.stop() == 0


def test_credentials_are_in_no_log_line(start_worker, journal, make_redis_server, settings):
    """J157"""
    server: RedisServer = make_redis_server()
    server.client().config_set("requirepass", "s3cret-word")
    port = server.port
    url = f"redis://:s3cret-word@127.0.0.1:{port}/0"
    settings.COGWORKER_REDIS = url
    worker = start_worker("-c", "1", url=url, env={"COGWORKER_TEST_LOG_LEVEL": "DEBUG"})
    line = worker.wait_for_line("works as .*").string
    assert f"redis://127.0.0.1:{port}/0" in line
    Append.perform_async("a")
    journal.wait_for("a")
    server.stop()
    worker.wait_for_line("is away")
    worker.signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert "s3cret" not in worker.output


def test_a_burst_worker_does_all_there_is_and_ends(start_worker, journal, board):
    for number in range(30):
        Append.perform_async(f"j{number}")
    AppendLater.perform_async("other queue")
    Append.perform_at(time.time() - 1, "due")
    Append.perform_in(3600, "future")
    FailOnce.perform_async("dies")
    Wait.perform_async("w")
    worker = start_worker("--burst", "-c", "3")
    journal.wait_for("started w")
    journal.wait_for("j29")
    assert worker.alive
    journal.release("w")
    assert worker.wait(15) == 0
    assert set(journal.lines()) == {
        *(f"j{number}" for number in range(30)),
        "due",
        "failed dies",
        "started w",
        "finished w",
    }
    assert board.in_progress() == 0
    assert board.client.zcard(KEYS.schedule) == 1
    assert len(board.queue("low")) == 1
    assert (board.processed, board.failed) == (32, 1)


@pytest.mark.parametrize("mode", ["reliable", "basic"])
def test_a_burst_worker_without_work_ends_at_once(start_worker, mode):
    worker = start_worker("--burst", "--fetch", mode)
    assert worker.wait(10) == 0


def test_strict_order_empties_the_first_queue_first(start_worker, journal):
    for number in range(40):
        AppendLater.perform_async(f"low{number}")
        Append.perform_async(f"high{number}")
    worker = start_worker("-q", "default", "-q", "low,500", "--strict", "-c", "1", "--burst")
    assert worker.wait(15) == 0
    lines = journal.lines()
    assert lines == [f"high{each}" for each in range(40)] + [f"low{each}" for each in range(40)]


def test_weights_mix_the_queues(start_worker, journal):
    for number in range(60):
        Append.perform_async(f"high{number}")
        AppendLater.perform_async(f"low{number}")
    worker = start_worker("-q", "default,3", "-q", "low", "-c", "1", "--burst")
    assert worker.wait(20) == 0
    lines = journal.lines()
    assert len(lines) == 120
    assert lines[:60] != sorted(lines[:60])
    assert any(each.startswith("low") for each in lines[:60])


def test_the_log_can_go_to_a_file(start_worker, journal, tmp_path: Path):
    path = tmp_path / "worker.log"
    worker = start_worker("-c", "1", "--logfile", str(path))
    Append.perform_async("a")
    journal.wait_for("a")
    assert worker.stop() == 0
    text = path.read_text()
    assert re.search(r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ pid=\d+ INFO .*works as", text)
    assert "tests.project.jobs.Append" in text
    assert f"pid={worker.pid} " in text


def test_the_second_name_of_the_command(start_worker, journal):
    worker = start_worker("-c", "1", command="runcogworker")
    Append.perform_async("a")
    journal.wait_for("a")
    assert worker.stop() == 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["-c", "0"], "--concurrency is 0"),
        (["-c", "-3"], "--concurrency is -3"),
        (["-q", "a,x"], "--queue a,x: the weight"),
        (["-q", "a,0"], "--queue a,0: the weight"),
        (["-q", "a,1001"], "at most 1000"),
        (["-q", "two words"], "--queue"),
        (["-q", ""], "--queue"),
        (["-q", ",3"], "--queue"),
        (
            ["--logfile", "/nonexistent/worker.log"],
            "--logfile /nonexistent/worker.log cannot be written",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_one_clear_line(args, text, redis_url, capsys):
    with pytest.raises(CommandError) as caught:
        call_command("runworker", *args)
    assert text in str(caught.value)
    assert caught.value.returncode == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        ({"COGWORKER_SERVER_MIDDLEWARE": ["nowhere.Thing"]}, "COGWORKER_SERVER_MIDDLEWARE names"),
        ({"COGWORKER_DEATH_HANDLERS": ["nowhere.thing"]}, "COGWORKER_DEATH_HANDLERS names"),
        ({"COGWORKER_CONCURRENCY": "many"}, "COGWORKER_CONCURRENCY is 'many'"),
        ({"COGWORKER_REDIS": "http://x"}, "COGWORKER_REDIS is 'http://x'"),
    ],
)
def test_wrong_settings_end_the_command_with_status_one(start_worker, conf, text):
    worker = start_worker(conf=conf)
    assert worker.wait(20) == 1
    assert text in worker.output
    assert "Traceback" not in worker.output


def test_an_unknown_option_is_refused(start_worker):
    worker = start_worker("--threads", "4")
    assert worker.wait(20) == 2
    assert "unrecognized arguments: --threads" in worker.output


def test_a_worker_reads_only_its_queues_and_respects_pauses(start_worker, journal, board):
    """E37"""
    store = get_store()
    store.pause("default")
    Append.perform_async("paused")
    AppendLater.perform_async("low")
    jobs.Nothing.set(queue="foreign").perform_async()
    worker = start_worker("-q", "default", "-q", "low", "-c", "2", conf=ODD)
    journal.wait_for("low")
    board.wait_until_settled()
    assert journal.lines() == ["low"]
    begun = time.monotonic()
    store.resume("default")
    journal.wait_for("paused")
    assert time.monotonic() - begun < 1.5
    assert len(board.queue("foreign")) == 1
    assert worker.stop() == 0


def test_a_worker_whose_queues_are_all_paused_does_not_spin(start_worker, journal, board):
    """D32"""
    store = get_store()
    store.pause("default")
    for number in range(3):
        Append.perform_async(f"p{number}")
    worker = start_worker("-c", "1")
    worker.wait_for_line("works as")
    Append.perform_in(1.5, "p3")
    before = board.client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
    wait_until(lambda: len(board.queue()) == 4)
    calls = board.client.info("commandstats")["cmdstat_evalsha"]["calls"] - before
    assert calls < 20
    assert journal.lines() == []
    store.resume("default")
    journal.wait_for("p3")
    assert journal.lines() == ["p0", "p1", "p2", "p3"]
