"""The pytest plugin: the fixture `jobs` and the marker `cogworker`.

pytest loads it in every project of an environment that has the package, with Django or without. So it imports
nothing of the package and of Django before a test asks for it, and asks for no settings.

* `jobs`: fake mode for this test; see `django_cogworker.testing.Jobs`.
* `@pytest.mark.cogworker("fake" | "inline" | "disabled")`: that mode for a test, a class or a module.
* Where the setting `COGWORKER_TESTING` is "fake", each test begins with an empty collection.

It works beside pytest-django and pytest-xdist and needs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django_cogworker.testing import Jobs

MODES = ("fake", "inline", "disabled")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "cogworker(mode): run the test in this mode of django-cogworker: 'fake' (default), 'inline' or 'disabled'.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Who enqueued something by the setting has loaded this module.
    by_setting = sys.modules.get("django_cogworker.testing.fake")
    if by_setting is not None:
        by_setting.the_transport().reset()


@pytest.fixture(autouse=True)
def _cogworker_mode(request: pytest.FixtureRequest) -> Iterator[None]:
    marker = request.node.get_closest_marker("cogworker")
    if marker is None:
        yield
        return
    mode = _mode_of(request, marker)
    if "jobs" in request.fixturenames:
        if mode != "fake":
            raise pytest.UsageError(
                f"{request.node.nodeid} asks for the fixture jobs, which is fake mode, and is marked "
                f"cogworker({mode!r}): take one of them away."
            )
        yield  # that fixture does it
        return
    _need_django("The marker cogworker")
    from django_cogworker import testing

    with getattr(testing, mode)():
        yield


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """The jobs of this test, collected in fake mode: assertions, `drain`, a frozen clock."""
    _need_django("The fixture jobs")
    from django_cogworker.testing import collect

    with collect() as collected:
        yield collected


def _mode_of(request: pytest.FixtureRequest, marker: pytest.Mark) -> str:
    given: tuple[Any, ...] = (*marker.args, *marker.kwargs.values()) or ("fake",)
    if len(given) != 1 or given[0] not in MODES or set(marker.kwargs) - {"mode"}:
        raise pytest.UsageError(
            f"{request.node.nodeid} is marked cogworker{given!r}; allowed is one of {', '.join(map(repr, MODES))}."
        )
    return str(given[0])


def _need_django(who: str) -> None:
    from django.apps import apps

    if not apps.ready:
        raise pytest.UsageError(
            f"{who} needs Django, which is not set up: install pytest-django and name your settings in "
            "DJANGO_SETTINGS_MODULE, or call django.setup() in conftest.py."
        )
    if not apps.is_installed("django_cogworker"):
        raise pytest.UsageError(
            f"{who} needs the app: add 'django_cogworker' to INSTALLED_APPS of your test settings."
        )
