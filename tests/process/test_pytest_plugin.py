"""The toolkit in a project of its own: the pytest plugin, found by its entry point, with pytest-django and xdist and
without; and the mixin under `manage.py test`, one process and several, forked and spawned.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.worker import ROOT

pytestmark = pytest.mark.timeout(180)

SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_cogworker", "shop"]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}}
COGWORKER_REDIS = "redis://127.0.0.1:1/0"
COGWORKER_TESTING = {testing!r}
"""
MANAGE = """
import multiprocessing, os, sys
from django.core.management import execute_from_command_line
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
if __name__ == "__main__":
    multiprocessing.set_start_method(os.environ.get("START_METHOD", "fork"))
    execute_from_command_line(sys.argv)
"""
JOBS = """
from django.contrib.auth.models import Group
from django_cogworker import Job

done = []

class Note(Job):
    def perform(self, value):
        done.append(value)

class MakeGroup(Job):
    def perform(self, name):
        Group.objects.get_or_create(name=name)
"""
FIXTURE = """
import pytest
from shop.jobs import MakeGroup, Note, done

@pytest.mark.parametrize("n", range(4))
def test_jobs(jobs, n):
    Note.perform_async(n)
    jobs.assert_enqueued(Note, args=[n], count=1)
    with jobs.frozen("2026-03-29 01:59", tz="Europe/Paris") as clock:
        Note.perform_in(3600, -n)
        assert [each.args for each in clock.tick(hours=2)] == [(n,), (-n,)]

@pytest.mark.django_db
def test_in_a_transaction(jobs, django_user_model):
    MakeGroup.perform_async("a")
    assert jobs.drain(run_twice=True) == 1
    jobs.assert_num_jobs(0)

@pytest.mark.cogworker("inline")
def test_inline():
    done.clear()
    Note.perform_async("inline")
    assert done == ["inline"]

@pytest.mark.cogworker
def test_fake():
    Note.perform_async(1)
    assert len(Note.jobs) == 1

@pytest.mark.cogworker("fake")
def test_both(jobs):
    Note.perform_async(1)
    jobs.assert_num_jobs(1, Note)
"""
CASES = """
from django.test import TestCase, TransactionTestCase
from django.contrib.auth.models import Group
from django_cogworker.testing import CogworkerTestCase
from shop.jobs import MakeGroup, Note

class {name}(CogworkerTestCase, {base}):
    def test_a(self):
        MakeGroup.perform_async("a")
        self.assert_enqueued(MakeGroup, args=["a"])
        self.assert_num_jobs(1)
        self.drain(crash="everywhere")
        assert Group.objects.count() == 1

    test_b = test_c = test_a

    async def test_d(self):
        await MakeGroup.aperform_async("a")
        assert await self.adrain() == 1
"""
BY_SETTING = """
import pytest
from shop.jobs import Note
from django_cogworker.testing import clear_all

@pytest.mark.parametrize("n", range(3))
@pytest.mark.django_db
def test_begins_empty(n):
    assert Note.jobs == []
    Note.perform_async(n)
    assert len(Note.jobs) == 1

@pytest.mark.parametrize("n", range(3))
def test_begins_empty_without_a_database(n):
    assert Note.jobs == []
    Note.perform_async(n)
"""
WITHOUT_DJANGO = """
import sys

def test_nothing_is_loaded():
    assert "django" not in sys.modules
    assert "redis" not in sys.modules
    assert not [each for each in sys.modules if each.startswith("django_cogworker.")] or [
        each for each in sys.modules if each.startswith("django_cogworker.")
    ] == ["django_cogworker.pytest_plugin"]
"""

Run = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new project, and the package installed as far as entry points go."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    lines = [f"{name} = {place}" for name, place in entries["pytest11"].items()]
    info = tmp_path / "site" / "cogworker_of_this_test-1.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]), "utf-8")
    (info / "METADATA").write_text("Name: cogworker-of-this-test\nVersion: 1\n", "utf-8")
    write(tmp_path, "settings.py", SETTINGS.format(testing=None))
    write(tmp_path, "manage.py", MANAGE)
    write(tmp_path, "shop/__init__.py", "")
    write(tmp_path, "shop/jobs.py", JOBS)
    return tmp_path


def write(project: Path, name: str, text: str) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")


@pytest.fixture
def run(project: Path) -> Run:
    def run(*args: str, status: int = 0, **env: str) -> str:
        paths = [str(project / "site"), str(project), str(ROOT)]
        without = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
        without.pop("DJANGO_SETTINGS_MODULE", None)
        paths += filter(None, [without.get("PYTHONPATH")])
        ended = subprocess.run(
            [sys.executable, *args],
            cwd=project,
            env={**without, "PYTHONPATH": os.pathsep.join(paths), **env},
            capture_output=True,
            text=True,
            timeout=120,
        )
        output = ended.stdout + ended.stderr
        assert ended.returncode == status, output
        return output

    return run


def pytest_args(*more: str) -> list[str]:
    return [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "--strict-markers",
        *more,
    ]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_the_fixture_and_the_marker_with_pytest_django(project, run, workers):
    write(project, "test_shop.py", FIXTURE)
    write(project, "test_case.py", CASES.format(name="Cases", base="TestCase"))
    output = run(*pytest_args("--ds=settings", *workers))
    assert "12 passed" in output


def test_each_test_begins_empty_where_the_setting_says_fake(project, run):
    write(project, "settings.py", SETTINGS.format(testing="fake"))
    write(project, "test_shop.py", BY_SETTING)
    assert "6 passed" in run(*pytest_args("--ds=settings"))


def test_without_pytest_django(project, run):
    write(
        project, "test_shop.py", FIXTURE.replace("@pytest.mark.django_db\n", "@pytest.mark.skip\n")
    )
    write(project, "conftest.py", "import django\ndjango.setup()\n")
    output = run(*pytest_args("-p", "no:django"), DJANGO_SETTINGS_MODULE="settings")
    assert "7 passed, 1 skipped" in output


def test_a_project_without_django_pays_nothing(project, run):
    write(project, "test_plain.py", WITHOUT_DJANGO)
    assert "1 passed" in run(*pytest_args("-p", "no:django", "-p", "no:xdist"))
    assert "@pytest.mark.cogworker(mode)" in run(*pytest_args("--markers", "-p", "no:django"))


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            "def test(jobs): pass",
            "The fixture jobs needs Django, which is not set up: install pytest-django",
        ),
        (
            "import pytest\n@pytest.mark.cogworker('inlin')\ndef test(): pass",
            "is marked cogworker('inlin',); allowed is one of 'fake', 'inline', 'disabled'",
        ),
        (
            "import pytest\n@pytest.mark.cogworker('inline')\ndef test(jobs): pass",
            "asks for the fixture jobs, which is fake mode, and is marked cogworker('inline')",
        ),
    ],
)
def test_what_cannot_be_is_said(project, run, test, said):
    write(project, "test_plain.py", test)
    assert said in run(*pytest_args("-p", "no:django"), status=1).replace("\n", " ")


def test_an_app_that_is_not_installed_is_said(project, run):
    text = SETTINGS.format(testing=None).replace('"django_cogworker", "shop"', '"shop"')
    write(project, "settings.py", text)
    write(project, "test_plain.py", "def test(jobs): pass")
    assert "add 'django_cogworker' to INSTALLED_APPS" in run(
        *pytest_args("--ds=settings"), status=1
    )


@pytest.mark.parametrize(
    ("args", "method"),
    [([], "fork"), (["--parallel", "2"], "fork"), (["--parallel", "2"], "spawn")],
    ids=["alone", "forked", "spawned"],
)
def test_the_mixin_under_djangos_own_runner(project, run, args, method):
    write(project, "test_one.py", CASES.format(name="One", base="TestCase"))
    write(project, "test_two.py", CASES.format(name="Two", base="TransactionTestCase"))
    output = run("manage.py", "test", *args, START_METHOD=method)
    assert re.search(r"Ran 8 tests", output)
    assert "OK" in output
