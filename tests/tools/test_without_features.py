"""Each feature is a guest: without its folder and its line of registration the core works as before.

Tried in a copy of the project, by the core's own tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from django_cogworker.features import registry

ROOT = Path(__file__).resolve().parents[2]
FEATURES = sorted(path.split(".")[2] for path in registry.FEATURES)
#: The core's tests that are run without one feature, and without any.
FEW = [
    "tests/redis/test_exchange.py",
    "tests/unit/test_features.py",
    "tests/redis/test_seams.py",
    "tests/redis/test_api.py",
]
MANY = [
    *FEW,
    "tests/redis/test_push.py",
    "tests/redis/test_due.py",
    "tests/redis/test_recover.py",
    "tests/redis/test_recovery_pass.py",
    "tests/redis/test_on_commit.py",
    "tests/unit/test_jobs.py",
    "tests/unit/test_middleware.py",
    "tests/unit/test_modes.py",
    "tests/process/test_shop.py",
    # A feature's own names are among the public ones.
    "--deselect=tests/unit/test_jobs.py::test_the_public_names",
]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project without what tests do not read."""
    for name in ("django_cogworker", "tests", "testproject", "tools", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", "run.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def take_out(copy: Path, names: list[str]) -> None:
    if "status" in names and "tasks" not in names:
        names = [*names, "tasks"]  # which stands on it
    features = copy / "django_cogworker" / "features"
    lines_of_all = features / "registry.py"
    text = lines_of_all.read_text("utf-8")
    for name in names:
        shutil.rmtree(features / name)
        text, lines = re.subn(
            rf'^ *"django_cogworker\.features\.{name}\..*\n', "", text, flags=re.M
        )
        assert lines == 1, f"{name} is registered by one line"
    lines_of_all.write_text(text, "utf-8")
    if "tasks" in names:  # its upper floor
        shutil.rmtree(copy / "django_cogworker" / "tasks")
        shutil.rmtree(copy / "testproject" / "loyalty")
        shop = copy / "testproject" / "config" / "settings.py"
        shop.write_text(shop.read_text("utf-8").replace("if any(", "if False and any("), "utf-8")
    if "status" in names:  # the test project's jobs that are tracked
        settings = copy / "tests" / "settings.py"
        settings.write_text(settings.read_text("utf-8").replace('"tests.followed",', ""), "utf-8")


def run(copy: Path, tests: list[str]) -> None:
    paths = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]
    assert " passed" in ended.stdout


@pytest.mark.parametrize("name", FEATURES)
def test_the_core_works_without_one_feature(copy, name):
    take_out(copy, [name])
    run(copy, FEW)


def test_the_core_works_without_any_feature(copy):
    take_out(copy, FEATURES)
    run(copy, MANY)
