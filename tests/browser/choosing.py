"""Somebody chooses what is done with several jobs, and says yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Locator

#: What is said to those actions that want something.
MINUTES, ELSEWHERE = 45, "elsewhere"
#: The button that says yes.
SURE = ".cog form:has(input[name=confirmed]) button"


def choose(visitor: Visitor, action: str) -> None:
    visitor.page.select_option("#cog-action", action)
    for name, value in (("#cog-minutes", str(MINUTES)), ("#cog-to", ELSEWHERE)):
        if visitor.page.locator(name).count():
            visitor.page.fill(name, value)


def say_yes(visitor: Visitor, told: Locator) -> str:
    """Answer the question, where there is one; what it asked."""
    sure = visitor.page.locator(SURE)
    told.or_(sure).first.wait_for()
    if not sure.count():
        return ""
    asked = visitor.page.locator(".cog-panel").first.inner_text()
    sure.click()
    return str(asked)
