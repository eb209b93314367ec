"""The file that says which jobs had started."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from django_cogworker.worker.started import (
    LEFT_BEHIND,
    StartedTickets,
    forget_started,
    read_started,
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(started: StartedTickets, seconds: float) -> None:
    os.utime(started._path, (time.time() - seconds,) * 2)


def test_what_runs_can_be_read_until_it_is_forgotten():
    started = StartedTickets(3)
    started.note(0, 7)
    started.note(2, 9)
    assert read_started(started.name) == frozenset({7, 9})
    started.note(0, 0)
    assert read_started(started.name) == frozenset({9})
    forget_started(started.name)
    assert read_started(started.name) is None
    assert read_started("../etc") is None


def test_only_a_file_that_nobody_keeps_is_taken_away_by_a_later_worker():
    left, kept, young = StartedTickets(1), StartedTickets(1), StartedTickets(1)
    age(left, LEFT_BEHIND + 60)
    age(kept, LEFT_BEHIND + 60)
    age(young, LEFT_BEHIND - 60)
    kept.keep()
    StartedTickets(1)
    assert read_started(left.name) is None
    assert read_started(kept.name) == read_started(young.name) == frozenset()


def test_without_a_folder_nothing_is_noted_and_that_is_told(own_folder, caplog):
    own_folder.joinpath(f"cogworker-started-{os.getuid()}").write_text("in the way")
    started = StartedTickets(1)
    started.note(0, 7)
    started.keep()
    started.remove()
    assert "every fetched job counts as started" in caplog.text
