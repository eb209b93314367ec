"""Which pairs `run.py test` runs, and how."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.worker import ROOT
from tools import pythons, suite
from tools.pythons import Pair


def pair(python: str, django: str) -> Pair:
    def version(text: str) -> tuple[int, int]:
        major, minor = text.split(".")
        return int(major), int(minor)

    return Pair(version(python), version(django))


def test_django_6_needs_python_3_12():
    pairs = pythons.supported_pairs()
    assert pairs[0] == pair("3.11", "5.2")
    assert pairs[-1] == pair("3.14", "6.1")
    assert pair("3.11", "6.0") not in pairs
    assert pair("3.12", "6.0") in pairs
    assert pairs == sorted(pairs)


def test_oldest_and_newest_in_full_and_the_newest_last():
    pairs = [pair("3.11", "5.2"), pair("3.12", "6.0"), pair("3.13", "6.1")]
    assert suite.environments(pairs) == [
        "py311-django52",
        "py312-django60-django",
        "py313-django61",
    ]
    assert suite.environments(pairs[:1]) == ["py311-django52"]
    assert suite.environments(pairs[:2]) == ["py311-django52", "py312-django60"]


def test_each_django_between_runs_the_tests_of_the_admin_once():
    pairs = [each for each in pythons.supported_pairs() if each.python != (3, 14)]
    assert suite.environments(pairs) == [
        "py311-django52",
        "py312-django52-smoke",
        "py312-django60-smoke",
        "py312-django61-smoke",
        "py313-django52-smoke",
        "py313-django60-django",
        "py313-django61",
    ]


def test_a_machine_of_ours_must_have_the_required_pairs(monkeypatch):
    absent = [pair("3.11", "5.2"), pair("3.14", "6.1")]
    monkeypatch.delenv("COGWORKER_CI", raising=False)
    assert suite.lacking(absent) == []
    monkeypatch.setenv("COGWORKER_CI", "1")
    assert suite.lacking(absent) == ["Python 3.11 with Django 5.2"]


def test_finds_this_python_and_no_broken_ones(tmp_path, monkeypatch):
    # What pyenv puts on the PATH for a version that is not chosen.
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        shim = tmp_path / name
        shim.write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
        shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    assert pythons.find_pythons() == {sys.version_info[:2]: Path(sys.executable)}


def test_takes_the_newest_release_of_pyenv(tmp_path, monkeypatch):
    for release in ("3.12.9", "3.12.10", "3.12.1"):
        directory = tmp_path / "versions" / release / "bin"
        directory.mkdir(parents=True)
        fake = directory / "python3.12"
        fake.write_text('#!/bin/sh\necho \'["cpython", [3, 12], "final", false]\'\n')
        fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert pythons.find_pythons() == {(3, 12): tmp_path / "versions/3.12.10/bin/python3.12"}


@pytest.mark.parametrize("pair", pythons.supported_pairs(), ids=lambda pair: pair.env)
def test_tox_knows_each_pair(pair):
    tox = (ROOT / "tox.ini").read_text()
    assert pair.env.split("-")[1] + ": Django>=" in tox
