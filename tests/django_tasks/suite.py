"""Runs Django's own tests of tasks against our backend, in a process of its own; see `test_conformance`.

    python -m tests.django_tasks.suite FOLDER

`FOLDER` holds Django's package `tasks`. Prints the outcome of each test as one JSON object.
"""

from __future__ import annotations

import json
import sys
import traceback
import unittest
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import django
from django.conf import settings

#: Django's own, or its backport.
PACKAGE = "django.tasks" if find_spec("django.tasks") else "django_tasks"
MODULES = ("test_tasks", "test_dummy_backend", "test_immediate_backend", "test_custom_backend")


class Outcomes(unittest.TestResult):
    """What became of each test, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.found[test.id()] = "passed"

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.found[test.id()] = "".join(traceback.format_exception(*err))

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.addError(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self.addError(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.found[test.id()] = f"skipped: {reason}"


def put_in_place() -> None:
    """Our backend takes the place of the two built-in ones wherever a test names one of them."""
    from django.test import utils

    from tests.django_tasks import standins

    names: dict[str, str] = {}
    for module, name, ours in (
        ("backends.dummy", "DummyBackend", standins.Dummy),
        ("backends.immediate", "ImmediateBackend", standins.Immediate),
    ):
        path = f"{PACKAGE}.{module}"
        setattr(import_module(path), name, ours)
        names[f"{path}.{name}"] = f"{ours.__module__}.{ours.__qualname__}"
    before: Any = utils.override_settings.__init__

    def init(self: Any, **given: Any) -> None:
        if "TASKS" in given:
            given["TASKS"] = {
                alias: {**entry, "BACKEND": names.get(entry["BACKEND"], entry["BACKEND"])}
                for alias, entry in given["TASKS"].items()
            }
        before(self, **given)

    utils.override_settings.__init__ = init  # type: ignore[method-assign]


def main(folder: str) -> None:
    settings.configure(
        INSTALLED_APPS=["django_cogworker", *([PACKAGE] if PACKAGE == "django_tasks" else [])],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        USE_TZ=True,
        COGWORKER_REDIS="redis://127.0.0.1:1/0",
        COGWORKER_TESTING="fake",
        TASKS={"default": {"BACKEND": "tests.django_tasks.standins.Dummy", "QUEUES": []}},
    )
    django.setup()
    sys.path.insert(0, folder)
    put_in_place()
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames([f"tasks.{each}" for each in MODULES])
    outcomes = Outcomes()
    suite.run(outcomes)
    print(json.dumps(outcomes.found))


if __name__ == "__main__":
    main(sys.argv[1])
