"""Every action of every page, by its button: what asks first is answered, and each says what became of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from django.contrib import admin

from django_cogworker import api
from django_cogworker.admin.actions import Deed
from django_cogworker.admin.page import Page
from django_cogworker.admin.registration import pages_on
from tests.browser.stage import Stage
from tests.browser.visitor import Visitor
from tests.project.jobs import AppendLater

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.timeout(300)

#: So many things of a page are looked at for the button of an action.
THINGS = 6
#: So long a button may take to come.
PATIENCE = 90.0
#: Of each kind of job, so that no action takes away the last.
ENOUGH = 5

UNFOLD = """button => {
    for (let each = button; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
}"""


def views(visitor: Visitor, page: Page) -> Iterator[None]:
    """Open the page, and those of the things on it."""
    visitor.open(page.url())
    things = [
        each for each in visitor.links() if each.startswith(page.url()) and "/change/" in each
    ]
    yield
    for each in list(dict.fromkeys(things))[:THINGS]:
        visitor.open(each)
        yield


def button_of(visitor: Visitor, page: Page, action: Deed) -> Locator | None:
    """On whichever page there is one; workers, for instance, are resumed only when they are quiet."""
    for _ in views(visitor, page):
        found = visitor.button(action.name)
        if found.count():
            return found.first
    return None


def click(visitor: Visitor, page: Page, action: Deed, button: Locator) -> list[str]:
    """Click it, give what it wants, say yes where it asks; what went wrong."""
    name, wrong = f"{page.name}-{action.name}", []
    button.evaluate(UNFOLD)
    for each in button.locator("xpath=ancestor::form").locator("input[type=text]").all():
        each.fill(f"from-{page.name}")  # a queue that it is not on
    button.click()
    said = visitor.page.locator(".messagelist li")
    sure = visitor.page.locator(".cog form:has(input[name=confirmed]) button")
    said.or_(sure).first.wait_for()
    if sure.count():
        wrong += visitor.look(f"asked-{name}", closely=False)
        sure.click()
        said.first.wait_for()
    elif action.destroys:
        wrong.append(f"{name} destroys, and did not ask")
    visitor.picture(f"done-{name}")
    if "success" not in (said.first.get_attribute("class") or ""):
        wrong.append(f"{name}: {said.first.inner_text()}")
    return wrong


def test_every_action_can_be_clicked_and_says_what_became_of_it(stage: Stage, visit):
    stage.fill(ENOUGH)
    visitor, wrong = visit(), []
    visitor.rest()
    # What destroys takes away what the others need.
    left = sorted(
        ((page, each) for page in pages_on(admin.site) for each in page.actions),
        key=lambda each: each[1].destroys,
    )
    deadline = time.monotonic() + PATIENCE
    while left:
        names = [f"{page.name}: {action.name}" for page, action in left]
        assert time.monotonic() < deadline, f"no button for {names}"
        page, action = left.pop(0)
        button = button_of(visitor, page, action)
        if button is None:
            left.append((page, action))
            continue
        wrong += click(visitor, page, action, button)
        deadline = time.monotonic() + PATIENCE
    assert wrong == [], "\n".join(wrong)


def test_no_is_an_answer(stage: Stage, visit):
    stage.fill()
    visitor = visit()
    visitor.open("/admin/django_cogworker/queue/low/change/")
    visitor.button("clear").click()
    visitor.page.get_by_role("link", name="No, go back").click()
    visitor.page.wait_for_url("**/queue/low/change/")
    assert stage.ask(lambda: api.Queue("low").size) == 1


def test_a_button_works_by_the_keyboard_alone(stage: Stage, visit):
    stage.push(AppendLater, "x")
    stage.ask(api.Queue("low").pause)
    visitor = visit()
    visitor.rest()
    visitor.open("/admin/django_cogworker/queue/")
    for _ in range(80):
        visitor.page.keyboard.press("Tab")
        if visitor.page.evaluate("document.activeElement.textContent") == "Resume":
            break
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_text("Resumed: low.").wait_for()
    assert not stage.ask(lambda: api.Queue("low").paused)
