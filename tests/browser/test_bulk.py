"""What is done with several jobs at once, by hand: with those that are checked, and with all that match, on each page
that has them, with scripts and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_cogworker import api
from tests.browser.choosing import ELSEWHERE, MINUTES, choose, say_yes
from tests.browser.jobs import Breaks
from tests.browser.stage import Stage
from tests.browser.visitor import Visitor
from tests.project.jobs import Append, AppendLater, FailOnce

pytestmark = pytest.mark.timeout(300)

LISTS = "/admin/django_cogworker/"
#: address: the actions that it offers.
PAGES = {
    "scheduled/": ["run", "reschedule", "move", "delete"],
    "retry/": ["retry", "reschedule", "move", "kill", "delete"],
    "dead/": ["retry", "move", "delete"],
    "queue/low/change/": ["move", "delete"],
}
SETS: dict[str, Callable[[], Any]] = {
    "scheduled/": api.ScheduledSet,
    "retry/": api.RetrySet,
    "dead/": api.DeadSet,
}
#: So many jobs there are for each action, of which so many are checked first.
EACH, CHECKED = 6, 2


def fill(stage: Stage, address: str) -> None:
    """Jobs for each action: its name is what they are about."""
    abouts = [f"for-{action}" for action in PAGES[address] for _ in range(EACH)]
    if address.startswith("queue"):
        stage.ask(
            lambda: AppendLater.set(on_commit=False).perform_bulk([[each] for each in abouts])
        )
    elif address.startswith("scheduled"):
        for each in abouts:
            stage.ask(Append.set(on_commit=False).perform_in, 86_400, each)
    else:
        failing: Any = Breaks if address.startswith("retry") else FailOnce
        stage.ask(lambda: failing.set(on_commit=False).perform_bulk([[each] for each in abouts]))
        worker = stage.start_worker()
        place = "retrying" if failing is Breaks else "dead"
        stage.wait_for_stats(**{place: len(abouts)})
        # What is retried stays on its queue.
        assert worker.stop() == 0


def shelf(address: str) -> Any:
    return SETS[address]() if address in SETS else api.Queue("low")


def about(place: Any, action: str) -> list[Any]:
    """The jobs for this action that lie there."""
    return [each for each in place if each.args == [f"for-{action}"]]


def done_with(address: str, action: str) -> int:
    """With how many jobs that was done that the action says: seen where they are now."""
    here = about(shelf(address), action)
    if action in ("run", "retry"):
        return len(about(api.Queue("default"), action))
    if action == "kill":
        return len(about(api.DeadSet(), action))
    if action == "delete":
        return EACH - len(here)
    if action == "reschedule":
        return sum(abs(each.at - time.time() - MINUTES * 60) < 300 for each in here)
    if address.startswith("queue"):
        return len(about(api.Queue(ELSEWHERE), action))
    return sum(each.queue == ELSEWHERE for each in here)


def with_checked(visitor: Visitor, address: str, action: str) -> Iterator[str]:
    """Check two of the jobs; what was asked and told."""
    boxes = visitor.page.locator('input[type=checkbox][name="item"]')
    assert boxes.count() == EACH
    for number in range(CHECKED):
        boxes.nth(number).check()
    choose(visitor, action)
    visitor.page.get_by_role("button", name="Do it with the selected jobs").click()
    told = visitor.page.locator(".messagelist li")
    yield say_yes(visitor, told)
    yield told.first.inner_text()


def with_all(visitor: Visitor, address: str, action: str, *, scripts: bool) -> Iterator[str]:
    """All that match; what was asked, and what the page says in the end."""
    choose(visitor, action)
    visitor.page.get_by_role("button", name="Do it with all that match").click()
    end = visitor.page.get_by_role("link", name="Back to the list")
    further = visitor.page.get_by_role("button", name="Go on")
    yield say_yes(visitor, end.or_(further))
    end.or_(further).first.wait_for()
    while not scripts and further.count():
        further.click()
    end.wait_for()
    yield visitor.page.locator(".cog-steps").inner_text()
    end.click()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("address", PAGES)
def test_each_action_for_some_and_for_all_that_match(stage: Stage, visit, address, scripts):
    fill(stage, address)
    visitor = visit(java_script_enabled=scripts)
    visitor.open(LISTS + address)
    offered = visitor.page.locator("#cog-action option:not([value=''])").all()
    assert [each.get_attribute("value") for each in offered] == PAGES[address]
    for action in PAGES[address]:
        visitor.open(f"{LISTS}{address}?args=for-{action}")
        asked, told = with_checked(visitor, address, action)
        assert bool(asked) == (action == "delete"), asked
        assert told.startswith(f"{CHECKED} jobs"), told
        assert stage.ask(done_with, address, action) == CHECKED

        visitor.open(f"{LISTS}{address}?args=for-{action}")
        # Two stay in sight, of which those that are moved are there already.
        stay = address in SETS and action in ("reschedule", "move")
        match = EACH if stay else EACH - CHECKED
        left = EACH if action == "reschedule" else EACH - CHECKED
        asked, told = with_all(visitor, address, action, scripts=scripts)
        assert f"{match} job" in asked
        assert f"Arguments: for-{action}" in asked
        assert "Finished." in told
        assert f"Done\n{left}" in told
        assert stage.ask(done_with, address, action) == EACH
        assert visitor.page.url.endswith(f"?args=for-{action}")


def test_a_box_in_the_head_checks_all_on_the_page(stage: Stage, visit):
    fill(stage, "queue/low/change/")
    visitor = visit()
    visitor.open(LISTS + "queue/low/change/")
    boxes = visitor.page.locator('input[type=checkbox][name="item"]')
    head = visitor.page.get_by_label("Select all on this page")
    head.check()
    assert all(each.is_checked() for each in boxes.all())
    boxes.first.uncheck()
    assert head.evaluate("box => box.indeterminate")
    choose(visitor, "delete")
    visitor.page.get_by_role("button", name="Do it with the selected jobs").click()
    say_yes(visitor, visitor.page.locator(".messagelist li"))
    number = EACH * len(PAGES["queue/low/change/"]) - 1
    visitor.page.get_by_text(f"{number} jobs were deleted.").wait_for()
    assert stage.ask(lambda: api.Queue("low").size) == 1


def test_who_chooses_nothing_is_told_so(stage: Stage, visit):
    fill(stage, "queue/low/change/")
    visitor = visit(java_script_enabled=False)
    visitor.open(LISTS + "queue/low/change/")
    choose(visitor, "delete")
    visitor.page.get_by_role("button", name="Do it with the selected jobs").click()
    visitor.page.get_by_text("Nothing was selected.").wait_for()
