"""Without the API for tasks (Django 5.2 without the backport) one test says so, and the others are not collected."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from django.apps import AppConfig, apps

from tests.settings import INSTALLED_APPS

IS_HERE = any(find_spec(each) for each in ("django.tasks", "django_tasks"))
collect_ignore_glob = [] if IS_HERE else ["test_[!a]*.py"]

#: What a worker with the tasks of `tests.tasked` needs.
CONF = {"INSTALLED_APPS": [*INSTALLED_APPS, "tests.tasked"]}


@pytest.fixture(autouse=True)
def _tasked_is_installed(monkeypatch: Any) -> None:
    """Here as in the workers, but without its `tasks.py` where there is no API for tasks."""
    monkeypatch.setitem(apps.app_configs, "tasked", AppConfig.create("tests.tasked"))


@pytest.fixture
def start_tasked(start_worker: Any) -> Any:
    """`start_worker` with the app that has the tasks."""

    def start(*args: str, conf: dict[str, Any] | None = None, **options: Any) -> Any:
        return start_worker(*args, conf={**CONF, **(conf or {})}, **options)

    return start
