"""What a test needs of the machine, and what happens where it is not there.

On a developer's machine the test is skipped, and the summary names what was missing. Where
`COGWORKER_CI` is set every tool must be there, so the same call fails. Only a test that makes no
sense here at all (another platform, another Django) may still be skipped, by `not_here`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest

# Names of one tool that differ between platforms and packages; the first that is found is used.
ALTERNATIVES = {
    "redis-server": ("redis-server", "valkey-server"),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "postgres": ("postgres", "pg_ctl"),
}

NOT_HERE = "not here: "


def in_ci() -> bool:
    """Whether a missing tool is a failure."""
    return bool(os.environ.get("COGWORKER_CI"))


def missing(what: str) -> NoReturn:
    """Skip the test because `what` is missing on this machine; fail where that must not be."""
    if in_ci():
        pytest.fail(f"missing on this machine: {what}", pytrace=False)
    pytest.skip(f"missing on this machine: {what}")


def not_here(reason: str) -> NoReturn:
    """Skip a test that cannot mean anything on this platform or with this version."""
    pytest.skip(NOT_HERE + reason)


def need(tool: str) -> str:
    """The path of a program that the test needs, such as `"chromium"`."""
    for name in ALTERNATIVES.get(tool, (tool,)):
        path = shutil.which(name)
        if path:
            return path
    missing(tool)


def need_module(name: str) -> None:
    """Skip or fail unless the Python module `name` can be imported."""
    if importlib.util.find_spec(name) is None:
        missing(f"the Python module {name}")


def may_be_skipped(reason: str) -> bool:
    """Whether a skip with this reason is allowed where `COGWORKER_CI` is set."""
    return reason.removeprefix("Skipped: ").startswith(NOT_HERE)
