"""The browser and what stands behind it, once for all tests of this folder.

They end with the folder, not with the run: the browser's client keeps an event loop in the main thread, which
tests of others must not find there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.stage import Stage
from tests.browser.themes import need_theme
from tests.browser.visitor import DESKTOP, Visitor
from tests.support.needs import need, need_module
from tests.support.redis_server import RedisServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    need_module("playwright")
    chromium = need("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def stage_of(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Stage]]:
    """The stage with a theme, which is opened for the first that comes: `stage_of("unfold")`."""
    stages: dict[str, Stage] = {}
    with ExitStack() as stack:

        def find(theme: str) -> Stage:
            if theme not in stages:
                redis = stack.enter_context(RedisServer())
                stages[theme] = Stage(tmp_path_factory.mktemp("stage"), redis, theme)
                stack.callback(stages[theme].close)
                stages[theme].open()
                stages[theme].cookies = _cookies(browser, stages[theme])
            return stages[theme]

        yield find


def _cookies(browser: Browser, stage: Stage) -> Any:
    """Of somebody who has logged in, by the form of the admin."""
    with browser.new_context() as context:
        visitor = Visitor(context.new_page(), stage.address)
        visitor.log_in()
        assert visitor.troubles == []
        return context.storage_state()


@pytest.fixture
def stage(
    request: pytest.FixtureRequest, stage_of: Callable[[str], Stage], settings: Any
) -> Iterator[Stage]:
    """With nothing on it. It has Django's own look, or, by an indirect parameter, that of a theme."""
    theme = getattr(request, "param", "")
    need_theme(theme)
    stage = stage_of(theme)
    settings.COGWORKER_REDIS = stage.redis.url
    stage.empty()
    before = len(stage.server.lines)
    yield stage
    print("\n".join(stage.server.lines[before:]))
    print("\n".join(each.output for each in stage.workers))
    stage.empty()


@pytest.fixture
def visit(browser: Browser, stage: Stage) -> Iterator[Callable[..., Visitor]]:
    """Come with a browser of one's own: `visit(timezone_id="Asia/Tokyo")`. `logged_in=False`: as a stranger."""
    visitors: list[Visitor] = []

    def come(logged_in: bool = True, **options: Any) -> Visitor:
        options = {"viewport": DESKTOP, "locale": "en-US", **options}
        context = browser.new_context(storage_state=stage.cookies if logged_in else None, **options)
        visitors.append(Visitor(context.new_page(), stage.address))
        return visitors[-1]

    yield come
    for each in visitors:
        each.page.context.close()
    assert [trouble for each in visitors for trouble in each.troubles] == []
