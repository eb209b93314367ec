"""What users see is typed: mypy --strict and pyright agree on each line of the samples.

A line that ends in `# must fail` has to be refused by both; no other line may be.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import need_module
from tests.support.worker import ROOT

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.py"))
MARK = "# must fail"

pytestmark = pytest.mark.timeout(300)


def marked(sample: Path) -> list[int]:
    lines = sample.read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.rstrip().endswith(MARK)]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def mypy_errors() -> list[dict[str, object]]:
    need_module("mypy")
    done = run("mypy", "--output=json", *map(str, SAMPLES))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [error for error in found if error["severity"] == "error"]


@pytest.fixture(scope="module")
def pyright_errors() -> list[dict[str, object]]:
    need_module("pyright")
    # The environment of the tests, not the one that a shell happens to have.
    python = ("--pythonpath", sys.executable)
    done = run("pyright", "--outputjson", *python, *map(str, SAMPLES))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [error for error in found if error["severity"] == "error"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_mypy(mypy_errors, sample):
    errors = [e for e in mypy_errors if Path(ROOT, str(e["file"])).samefile(sample)]
    assert sorted({e["line"] for e in errors}) == marked(sample), errors


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_pyright(pyright_errors, sample):
    errors = [e for e in pyright_errors if Path(str(e["file"])).samefile(sample)]
    lines = sorted({e["range"]["start"]["line"] + 1 for e in errors})
    assert lines == marked(sample), errors


def test_there_are_samples_with_lines_that_must_fail():
    assert sum(len(marked(sample)) for sample in SAMPLES) > 5
