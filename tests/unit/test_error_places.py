"""Where an error was raised, and which group it is of."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from django_cogworker.exceptions import JobFailedError
from django_cogworker.features.base import Run
from django_cogworker.features.errors.feature import Errors
from django_cogworker.features.errors.group import UNKNOWN, failure_of, failure_of_record
from django_cogworker.features.errors.place import Place, place_of
from django_cogworker.payload.job import normalise
from tests.project.jobs import Append, FailOnce

HERE = f"{__name__}."
PAYLOAD = {"class": Append.job_name, "jid": "j1", "args": [], "queue": "default"}


def raised(function: Callable[..., Any], *args: Any) -> BaseException:
    try:
        function(*args)
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An installed package, whose function calls what it is given."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "somelib.py").write_text(
        "def call(function, *args):\n    return function(*args)\n\ndef fail():\n    raise ValueError('lib')\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("somelib")
    del sys.modules["somelib"]


class Thing:
    def fails(self) -> None:
        raise ValueError("here")

    def fails_in(self, function: Callable[..., Any], *args: Any) -> None:
        function(*args)


def test_it_is_the_deepest_function_of_the_project():
    place = place_of(raised(Thing().fails_in, Thing().fails), "x.Job")
    assert place.where == f"{HERE}Thing.fails"
    file, _, line = place.line.rpartition(":")
    assert file == __file__
    assert Path(__file__).read_text("utf-8").splitlines()[int(line) - 1].strip().startswith("raise")


def test_the_standard_library_is_not_the_project():
    assert (
        place_of(raised(Thing().fails_in, json.loads, "{"), "x.Job").where
        == f"{HERE}Thing.fails_in"
    )


def test_what_is_installed_is_not_the_project(library):
    assert (
        place_of(raised(Thing().fails_in, library.fail), "x.Job").where == f"{HERE}Thing.fails_in"
    )


def test_the_project_may_be_called_by_a_library(library):
    assert place_of(raised(library.call, Thing().fails), "x.Job").where == f"{HERE}Thing.fails"


def test_this_package_is_not_the_project():
    error = raised(Thing().fails_in, normalise, {"class": 3})
    assert place_of(error, "x.Job").where == f"{HERE}Thing.fails_in"


def test_an_installed_project_is_known_by_its_jobs(library):
    """Its jobs are of the package that was running, wherever that lies."""
    error = raised(library.call, json.loads, "{")
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # the test itself is a project
    assert place_of(error, "somelib.jobs.Job").where == "somelib.call"


def test_without_any_of_the_project_it_is_the_last_frame(library):
    error = raised(library.call, json.loads, "{")
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    assert place_of(error, "x.Job").where == "json.decoder.JSONDecoder.raw_decode"


def test_an_error_that_was_never_raised_has_no_place():
    assert place_of(ValueError(), "x.Job") == Place("", "")


def test_what_makes_a_group_and_what_does_not():
    def other_line() -> None:
        if True:
            raise ValueError("another text")

    def group(error: BaseException, **fields: Any) -> str:
        return failure_of({**PAYLOAD, **fields}, error).group

    one = group(raised(Thing().fails))
    assert one == group(raised(Thing().fails), jid="j2", args=[5])
    assert len(one) == 12
    others = [
        group(raised(other_line)),
        group(raised(Thing().fails), **{"class": FailOnce.job_name}),
        group(raised(Thing().fails_in, json.loads, "{")),
        group(raised(Thing().fails_in, int, "x")),
        group(raised(Thing().fails_in, int, [])),
    ]
    assert len({one, *others}) == 6


def test_classes_that_nobody_knows_share_a_name():
    """Any text may stand in a payload; the table is for the classes of the project."""
    failures = {failure_of({**PAYLOAD, "class": f"no.{n}"}, ValueError()).group for n in range(3)}
    assert len(failures) == 1
    assert failure_of({**PAYLOAD, "class": "no.1"}, ValueError()).job_class == UNKNOWN


def test_a_failure_that_a_dead_worker_could_not_file_is_told_by_its_record():
    error = raised(Thing().fails)
    marks = Errors().failed(PAYLOAD, error)
    record = {**PAYLOAD, "error_class": "ValueError", "error_message": "here", **marks}
    for late in (None, JobFailedError("here")):
        (effect, _) = Errors().settled(Run(record, "dead", error=late))
        told = json.loads(str(effect.args[4]))
        assert effect.args[0] == failure_of(PAYLOAD, error).group
        assert (told["where"], told["error"], told["message"]) == (
            f"{HERE}Thing.fails",
            "ValueError",
            "here",
        )


@pytest.mark.parametrize("junk", [None, 5, ["x"], "x" * 100])
def test_junk_in_a_record_harms_nobody(junk):
    fields = ("error_group", "error_place", "error_class", "error_message")
    failure = failure_of_record({**PAYLOAD, **dict.fromkeys(fields, junk)})
    assert len(failure.group) == 12


@pytest.mark.parametrize("outcome", ["finished", "waiting", "cancelled", "expired", "replaced"])
def test_what_is_no_failure_is_not_counted(outcome):
    assert Errors().settled(Run(PAYLOAD, outcome, 1.0, error=ValueError())) == ()
    assert Errors().recovered(PAYLOAD, "front") == Errors().recovered(PAYLOAD, "schedule") == ()
