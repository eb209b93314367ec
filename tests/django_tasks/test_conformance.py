"""Django's own tests of tasks, run against our backend.

They are in Django's source distribution alone, which is fetched for the version that is tested and kept in a temporary
folder. For the backport, which brings no tests, Django 6.0's are taken, with its names put in.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

import django
import pytest

from tests.support.needs import missing

ROOT = Path(__file__).resolve().parents[2]
BACKPORT = find_spec("django.tasks") is None
VERSION = "django>=6.0,<6.1" if BACKPORT else f"django=={django.get_version()}"

#: What is about a limit of Django's two backends that ours does not have.
ABOUT_OTHERS = {
    "test_dummy_backend.DummyBackendTestCase.test_refresh_result": (
        "changes the object in the dummy's list and expects that `refresh` reads it; ours reads a record"
    ),
    "test_dummy_backend.DummyBackendTestCase.test_refresh_result_async": "the same",
    "test_immediate_backend.ImmediateBackendTestCase.test_cannot_get_result": (
        "expects that results cannot be had by their ids; from ours they can"
    ),
    "test_immediate_backend.ImmediateBackendTestCase.test_cannot_refresh_result": "the same",
    "test_immediate_backend.ImmediateBackendTestCase.test_cannot_pass_run_after": (
        "expects that tasks cannot be deferred; ours can"
    ),
}
if sys.version_info < (3, 12):
    ABOUT_OTHERS["test_custom_backend.CustomBackendTestCase.test_no_enqueue"] = (
        "expects a message of Python 3.12, which Django 6 needs"
    )

#: The backport's names for what Django calls otherwise.
NAMES = (
    (r"\bdjango\.tasks\b", "django_tasks"),
    (r"\bInvalidTask\b", "InvalidTaskError"),
    (r"\bInvalidTaskBackend\b", "InvalidTaskBackendError"),
    (r"support async Tasks", "support async tasks"),
)


def fetched() -> Path:
    """The source distribution, fetched once a machine."""
    folder = Path(tempfile.gettempdir()) / f"cogworker-django-sources-{os.getuid()}"
    name = re.sub(r"[^\w.]+", "-", VERSION)
    kept = folder / f"{name}.tar.gz"
    if not kept.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            asked = [sys.executable, "-m", "pip", "download", "--no-binary", ":all:", "--no-deps"]
            try:
                done = subprocess.run(
                    [*asked, "--ignore-requires-python", "-q", "-d", place, VERSION],
                    capture_output=True,
                    text=True,
                    timeout=240,
                )
            except subprocess.TimeoutExpired:
                missing(f"the source of {VERSION} (no answer in 240 s)")
            found = list(Path(place).glob("*.tar.gz"))
            if not found:
                missing(f"the source of {VERSION} ({done.stderr.strip()[-300:]})")
            found[0].rename(kept)
    return kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Django's package `tasks`, alone in a folder."""
    with tarfile.open(fetched()) as archive:
        wanted = [each for each in archive.getmembers() if "/tests/tasks/" in each.name]
        archive.extractall(tmp_path / "source", wanted, filter="data")
    (package,) = (tmp_path / "source").glob("*/tests/tasks")
    found = tmp_path / "alone"
    shutil.copytree(package, found / "tasks")
    if BACKPORT:
        for each in (found / "tasks").glob("*.py"):
            text = each.read_text("utf-8")
            for pattern, ours in NAMES:
                text = re.sub(pattern, ours, text)
            each.write_text(text, "utf-8")
    return found


@pytest.mark.smoke  # so it runs on each pair of Python and Django
@pytest.mark.timeout(400)
def test_djangos_own_tests_pass(folder):
    ended = subprocess.run(
        [sys.executable, "-m", "tests.django_tasks.suite", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": ""},
    )
    assert ended.returncode == 0, ended.stderr
    outcomes: dict[str, str] = {
        name.removeprefix("tasks."): outcome
        for name, outcome in json.loads(ended.stdout.splitlines()[-1]).items()
    }
    assert len(outcomes) > 70
    wrong = {name: text for name, text in outcomes.items() if text != "passed"}
    assert {name: text for name, text in wrong.items() if name not in ABOUT_OTHERS} == {}
    # A row of a test that passes, or is gone, is out of date.
    assert sorted(wrong) == sorted(ABOUT_OTHERS)
