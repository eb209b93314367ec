"""Every page under themes of the admin that many projects have: they bring their own templates and styles, and take
away those that Django's admin has.
"""

from __future__ import annotations

import pytest
from django.contrib import admin

from django_cogworker.admin.registration import pages_on
from tests.browser.choosing import SURE, choose
from tests.browser.stage import Stage
from tests.browser.themes import THEMES
from tests.browser.visitor import Visitor
from tests.browser.walking import stock, walk

pytestmark = pytest.mark.timeout(300)


def questions_and_answers(visitor: Visitor, name: str) -> list[str]:
    """The pages that nobody comes to by a link: a question, a message, an action for all with its end."""
    visitor.open("/admin/django_cogworker/queue/low/change/")
    visitor.button("clear").click()
    visitor.page.locator(SURE).wait_for()
    wrong = visitor.glance(f"{name}-asked")
    visitor.page.get_by_role("link", name="No, go back").click()
    visitor.button("pause").click()
    visitor.page.get_by_text("Paused: low.").wait_for()
    wrong += visitor.glance(f"{name}-told")
    visitor.open("/admin/django_cogworker/dead/")
    choose(visitor, "delete")
    visitor.page.get_by_role("button", name="Do it with all").click()
    visitor.page.locator(SURE).wait_for()
    wrong += visitor.glance(f"{name}-asked-for-all")
    visitor.page.locator(SURE).click()
    visitor.page.get_by_role("link", name="Back to the list").wait_for()
    return wrong + visitor.glance(f"{name}-done-for-all")


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("stage", THEMES, indirect=True)
def test_every_page_is_sound_under_a_theme(stage: Stage, visit, colours):
    stage.fill()
    stage.add_neighbour()
    visitor = visit(color_scheme=colours)
    visitor.rest()
    visitor.known = stock(visitor)
    seen, wrong = set(), []
    for each in walk(visitor):
        seen.add(each)
        if "?" not in each:
            wrong += visitor.glance(f"{stage.theme}-{each}-{colours}")
    wrong += questions_and_answers(visitor, f"{stage.theme}-{colours}")
    assert wrong == [], "\n".join(wrong)
    assert {f"{each.name}_changelist" for each in pages_on(admin.site)} <= seen
