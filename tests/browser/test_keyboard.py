"""A list of jobs by the keyboard alone: to look, to find, to choose and to act."""

from __future__ import annotations

import pytest

from django_cogworker import api
from tests.browser.stage import Stage
from tests.project.jobs import Append

pytestmark = pytest.mark.timeout(120)

SCHEDULED = "/admin/django_cogworker/scheduled/"
#: What Tab comes to, in this order, between the tabs of the pages and the first job.
ORDER = ["q", "class", "args", "jid", "queue", "tag", "Filter"]
ORDER += ["action", "minutes", "to", "Do it with the selected jobs", "scope"]


def test_a_list_by_the_keyboard_alone(stage: Stage, visit):
    for name in ("keep", "drop", "other"):
        stage.ask(Append.set(on_commit=False).perform_in, 86_400, name)
    stage.ask(Append.set(on_commit=False).perform_in, 86_400, "drop this, too")
    visitor = visit()
    visitor.rest()
    visitor.open(SCHEDULED)
    keys, page = visitor.page.keyboard, visitor.page

    # Look for some.
    visitor.tab_to("#cog-args")
    keys.type("drop")
    keys.press("Enter")
    page.wait_for_url("**args=drop*")
    boxes = page.locator('input[type=checkbox][name="item"]')
    assert boxes.count() == 2

    # Tab goes as one reads; the box in the head comes before those of the jobs.
    passed = visitor.tab_to("[data-cog-all]")
    assert [each for each in passed if each in ORDER] == ORDER
    keys.press("Space")
    assert [each.is_checked() for each in boxes.all()] == [True, True]

    # Details open and close.
    visitor.tab_to("tbody tr:first-child .cog-more summary")
    keys.press("Enter")
    assert page.locator("tbody .cog-more[open]").count() == 1
    keys.press("Space")
    assert page.locator("tbody .cog-more[open]").count() == 0

    # Back to the action, which asks before it destroys.
    visitor.tab_to("#cog-action", back=True)
    keys.type("Del")
    visitor.tab_to("#cog-jobs button:not([name])")
    keys.press("Enter")
    page.get_by_text("Delete 2 jobs?").wait_for()
    visitor.tab_to(".cog form button")
    keys.press("Enter")
    page.get_by_text("2 jobs were deleted.").wait_for()

    # One job, by the button in its row.
    visitor.open(SCHEDULED)
    visitor.tab_to('tbody tr:first-child form:has([value="run"]) button')
    keys.press("Space")
    page.get_by_text("1 job is on its queue.").wait_for()
    left = stage.ask(lambda: [each.args for each in api.ScheduledSet()])
    assert left == [["other"]]
