"""The wheel holds what it must hold, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.needs import need_module
from tests.support.worker import ROOT

BUILD = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    need_module("hatchling")
    target = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(target)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(target / done.stdout.split()[-1]) as file:
        yield file


def test_all_of_the_package_is_in_the_wheel(wheel):
    package = ROOT / "django_cogworker"
    expected = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == expected
    assert "django_cogworker/py.typed" in held


def test_the_scripts_for_redis_are_in_the_wheel(wheel):
    scripts = [Path(name) for name in wheel.namelist() if name.endswith(".lua")]
    assert len(scripts) > 5


def test_the_translations_are_in_the_wheel(wheel):
    held = {Path(name).parts[2] for name in wheel.namelist() if name.endswith("/django.mo")}
    assert held == {"de", "es", "fr", "ru", "zh_Hans"}


def test_what_it_says_of_itself(wheel):
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    needed = metadata.get_all("Requires-Dist") or []
    # An upper bound of ours would hold back everybody's upgrades.
    assert not [line for line in needed if "<" in line]
