"""Where `COGWORKER_CI` is set, a skip is a failure, unless the test makes no sense there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.worker import ROOT

TESTS = """
import pytest
from tests.support.needs import need, need_module, not_here

def test_tool(): need("no-such-program")
def test_module(): need_module("no_such_module")
def test_plain(): pytest.skip("no time")
@pytest.mark.skip(reason="tomorrow")
def test_marked(): pass
def test_elsewhere(): not_here("only on the Moon")
def test_good(): pass
"""
MODULE = """
import pytest
pytest.importorskip("no_such_module")
"""


@pytest.fixture
def run(tmp_path: Path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)

    def run(name: str, **env: str) -> str:
        variables = {k: v for k, v in os.environ.items() if not k.startswith("COGWORKER_")}
        command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "-c", str(ROOT / "pyproject.toml"), str(tmp_path / name)],
            cwd=ROOT,
            env={**variables, "PYTHONPATH": str(ROOT), **env},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout

    return run


def test_at_home_what_is_missing_is_named(run):
    output = run("test_some.py")
    assert "1 passed, 5 skipped" in output
    assert "missing on this machine: no-such-program" in output
    assert "missing on this machine: the Python module no_such_module" in output
    assert "1 skipped" in run("test_module.py")


def test_in_ci_it_fails(run):
    output = run("test_some.py", COGWORKER_CI="1")
    # The marked one is skipped in its setup, so there it counts as an error.
    assert "3 failed, 1 passed, 1 skipped, 1 error" in output
    assert "skipped, though this machine should run everything" in output
    assert "1 error" in run("test_module.py", COGWORKER_CI="1")


def test_a_smoke_run_without_a_smoke_test_is_no_failure(tmp_path):
    (tmp_path / "test_none.py").write_text("")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-m", "smoke"]
    for suite, code in (("", pytest.ExitCode.NO_TESTS_COLLECTED), ("smoke", pytest.ExitCode.OK)):
        done = subprocess.run(
            [*command, "-c", str(ROOT / "pyproject.toml"), str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COGWORKER_SUITE": suite},
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == code
