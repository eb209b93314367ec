"""Enums, dataclasses and rows as arguments, in real workers and with a real database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from django.contrib.auth.models import User

from django_cogworker.api.history import History
from tests.guests.jobs import Tell, TellAsync
from tests.guests.types import Color, Line, Parcel
from tests.process.coroutines import start
from tests.support.waiting import wait_until


def add_user(database: dict[str, str], name: str) -> User:
    """A row that was committed, and an instance as if it had been read."""
    columns = "username, password, is_superuser, first_name, last_name, email, is_staff, is_active, date_joined"
    with closing(sqlite3.connect(database["COGWORKER_TEST_DB"], isolation_level=None)) as db:
        values = (name, "", 0, "", "", "", 0, 1, "2026-11-30")
        made = db.execute(
            f"INSERT INTO auth_user ({columns}) VALUES ({', '.join('?' * len(values))})", values
        )
    return User.from_db("default", ["id"], [made.lastrowid])


def gone() -> User:
    return User.from_db("default", ["id"], [4711])


@pytest.mark.parametrize("job", [Tell, TellAsync])
def test_what_a_project_has_arrives_in_threads_and_on_the_loop(
    start_worker, journal, board, database, job
):
    """Rows are loaded where the job's own queries are made: a coroutine could not ask for them."""
    worker = start(start_worker, env=database)
    ann = add_user(database, "ann")
    parcel = Parcel(lines=(Line("a", 2),), color=Color.GREEN)
    job.perform_async(ann, Color.RED, parcel)
    job.perform_async("and plain ones")
    journal.wait_for(f"User:ann {Color.RED!r} {parcel!r}")
    journal.wait_for("'and plain ones'")
    board.wait_until_settled()
    assert (board.processed, board.failed) == (2, 0)
    assert worker.stop() == 0


@pytest.mark.parametrize("job", [Tell, TellAsync])
def test_what_becomes_of_a_job_whose_row_is_gone_is_said_by_an_option(
    start_worker, journal, board, database, job
):
    """Dead at once by default, though it may be tried 25 times; never run."""
    worker = start(start_worker, env=database)
    dead = job.perform_async(gone())
    tried = job.set(missing_row="retry").perform_async("x", gone())
    dropped = job.set(missing_row="discard").perform_async([gone()])
    payload = board.dead(dead)
    assert payload["error_class"] == "django_cogworker.exceptions.MissingRow"
    assert payload["error_message"] == "args[0] is auth.User(4711), which is not there any more."
    again, _ = board.retrying(tried)
    assert (again["retry_count"], again["missing_row"]) == (1, "retry")
    wait_until(lambda: board.outcomes(dropped) == ["discarded"])
    assert not board.in_sets(dropped)
    board.wait_until_settled()
    assert journal.lines() == []
    records = {each.jid: each for each in History().page().entries}
    assert {jid: (each.status, each.error_class) for jid, each in records.items()} == {
        dead: ("failed", "django_cogworker.exceptions.MissingRow"),
        tried: ("failed", "django_cogworker.exceptions.MissingRow"),
        dropped: ("failed", "django_cogworker.exceptions.MissingRow"),
    }
    assert worker.stop() == 0


@pytest.mark.parametrize("queue", ["default", "hooks"])
def test_a_class_that_this_release_does_not_know_uses_no_attempt(
    start_worker, journal, board, queue
):
    worker = start(start_worker)
    waiting: dict[str, Any] = {
        "enum": {"$": "enum", "v": "tests.guests.types:Color.ULTRAVIOLET"},
        "field": {
            "$": "dataclass",
            "of": "tests.guests.types:Line",
            "v": {"sku": "a", "weight": 3},
        },
        "model": {"$": "model", "of": "guests.Future", "v": 1},
        "code": {"$": "enum", "v": "os:system"},
    }
    name = (Tell if queue == "default" else TellAsync).job_name
    for jid, packed in waiting.items():
        raw = {"class": name, "jid": jid, "args": [[packed]], "queue": queue, "v": 1}
        board.push_raw(json.dumps(raw).encode(), queue)
    for jid in waiting:
        payload, _ = board.scheduled(jid)
        assert "retry_count" not in payload
        assert "unknown_since" in payload
    worker.wait_for_line(r"has no member 'ULTRAVIOLET'\. Known: RED, GREEN, CRIMSON")
    assert board.failed == 0
    assert worker.stop() == 0
