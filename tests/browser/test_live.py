"""Pages that are left open: they follow what happens, and ask for it no more often than they should.

Time in the browser is the test's: `page.clock` moves its timers on, so nobody waits for them.
"""

from __future__ import annotations

import time

import pytest

from django_cogworker import api
from tests.browser.stage import Stage
from tests.browser.visitor import Visitor
from tests.project.jobs import AppendLater
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

OVERVIEW = "/admin/django_cogworker/overview/"
QUEUES = "/admin/django_cogworker/queue/"
#: The tab's own word on whether anybody sees it.
VISIBLE = """hidden => {
    Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event("visibilitychange"));
}"""
#: Counts the questions whose answer is not shown yet.
COUNT = """
const ask = window.fetch;
window.underway = 0;
window.fetch = async (...given) => {
    window.underway += 1;
    const answered = await ask(...given).catch(error => error);
    const over = new MessageChannel();
    over.port1.onmessage = () => { window.underway -= 1; };
    if (answered instanceof Error) {
        over.port2.postMessage(0);
        throw answered;
    }
    answered.clone().text().finally(() => over.port2.postMessage(0));
    return answered;
};"""
MINUTE = 60_000
STEP = 2_500


def settle(visitor: Visitor) -> None:
    """Wait until the answer to what was asked is shown."""
    wait_until(lambda: visitor.page.evaluate("window.underway === 0"))


def pass_time(visitor: Visitor, milliseconds: int, polls: int) -> None:
    """So much time goes by, in which the page asks so many times."""
    settle(visitor)
    before = len(visitor.polls)
    # In steps, since the next timer is set when the answer to the last question has come.
    for _ in range(milliseconds // STEP):
        visitor.page.clock.run_for(STEP)
        settle(visitor)
    assert len(visitor.polls) - before == polls


@pytest.fixture
def open_page(visit):
    def come(path: str = OVERVIEW, **options) -> Visitor:
        visitor: Visitor = visit(**options)
        visitor.page.add_init_script(COUNT)
        now = time.time()
        visitor.page.clock.install(time=now)
        visitor.page.clock.pause_at(now + 1)
        visitor.open(path)
        return visitor

    return come


def test_what_happens_is_seen_without_a_reload(stage: Stage, open_page):
    visitor = open_page()
    visitor.page.evaluate("window.same = true")
    assert "No job was ever enqueued here" in visitor.text()
    stage.push(AppendLater, "x")
    visitor.page.clock.run_for(5000)
    visitor.page.locator("td a", has_text="low").wait_for()
    stage.ask(api.Queue("low").pause)
    visitor.page.clock.run_for(5000)
    # The button that came with it does what it says, token and all.
    visitor.page.get_by_role("button", name="Resume the queue low").click()
    visitor.page.get_by_text("Resumed: low.").wait_for()


def test_a_worker_comes_and_goes_before_the_eyes(stage: Stage, open_page):
    visitor = open_page("/admin/django_cogworker/worker/")
    assert "No worker lives" in visitor.text()
    worker = stage.start_worker()
    wait_until(lambda: stage.ask(lambda: list(api.ProcessSet())))
    visitor.page.clock.run_for(5000)
    row = visitor.page.locator("td a", has_text=f":{worker.pid}:")
    row.wait_for()
    assert worker.stop() == 0
    visitor.page.clock.run_for(5000)
    row.wait_for(state="detached")


def test_a_page_asks_at_its_interval_and_a_hidden_tab_not_at_all(stage: Stage, open_page):
    visitor = open_page()
    pass_time(visitor, 20_000, polls=4)
    visitor.page.evaluate(VISIBLE, True)
    pass_time(visitor, MINUTE, polls=0)
    stage.push(AppendLater, "x")
    before = len(visitor.polls)
    visitor.page.evaluate(VISIBLE, False)
    visitor.page.locator("td a", has_text="low").wait_for()
    assert len(visitor.polls) == before + 1
    pass_time(visitor, 10_000, polls=2)


def test_a_pause_lasts_from_page_to_page_until_it_is_ended(stage: Stage, open_page):
    visitor = open_page()
    visitor.page.get_by_role("button", name="Pause refreshing").click()
    pass_time(visitor, MINUTE, polls=0)
    visitor.open(QUEUES)
    button = visitor.page.get_by_role("button", name="Refresh again")
    assert button.get_attribute("aria-pressed") == "true"
    pass_time(visitor, MINUTE, polls=0)
    stage.push(AppendLater, "x")
    button.click()
    visitor.page.locator("td a", has_text="low").wait_for()
    pass_time(visitor, 10_000, polls=2)


def test_nothing_moves_under_anybodys_hands(stage: Stage, open_page):
    stage.push(AppendLater, "x")
    visitor = open_page()
    button = visitor.button("pause", "low")
    button.focus()
    pass_time(visitor, MINUTE, polls=0)
    assert button.evaluate("each => each === document.activeElement")
    button.blur()
    pass_time(visitor, 10_000, polls=2)


def test_a_logout_ends_it_and_says_so(stage: Stage, visit, open_page):
    visitor = open_page(logged_in=False)
    # A login of its own: the others' must not end with it.
    visitor.log_in()
    visitor.open(OVERVIEW)
    other = visitor.page.context.new_page()
    other.goto(stage.address + "/admin/")
    other.click("#logout-form button")
    other.close()
    visitor.page.clock.run_for(5000)
    visitor.page.get_by_text("Not refreshed any more: log in again.").wait_for()
    assert visitor.page.locator(".cog-refresh").count() == 0
    pass_time(visitor, 3 * MINUTE, polls=0)


def test_a_server_that_does_not_answer_is_asked_less_often_until_it_does(stage: Stage, open_page):
    visitor = open_page()
    visitor.page.route("**/*_live=*", lambda route: route.fulfill(status=503, body=""))
    # After 5 seconds, then 10, 20, 40, 60 and 60.
    pass_time(visitor, 190_000, polls=5)
    assert "Not up to date: the server does not answer." in visitor.text()
    visitor.page.unroute("**/*_live=*")
    stage.push(AppendLater, "x")
    pass_time(visitor, 5_000, polls=1)
    visitor.page.locator("td a", has_text="low").wait_for()
    assert "Not up to date" not in visitor.text()
    pass_time(visitor, 10_000, polls=2)
    visitor.excuse("503")


def test_times_are_those_of_whoever_looks(stage: Stage, visit):
    """Noon in UTC."""
    noon = "/admin/django_cogworker/periodic/noon/change/"
    for zone, shown in (("America/Bogota", "07:00:00 AM"), ("Asia/Tokyo", "09:00:00 PM")):
        visitor = visit(timezone_id=zone)
        visitor.open(noon)
        times = visitor.page.locator("ol time")
        assert times.count() == 10
        assert all(each.endswith(shown) for each in times.all_inner_texts())
        assert str(times.first.get_attribute("datetime")).endswith("T12:00:00Z")


def test_it_all_works_without_scripts(stage: Stage, visit):
    stage.fill()
    visitor = visit(java_script_enabled=False, logged_in=False)
    visitor.log_in()
    visitor.open(QUEUES + "?q=lo")
    assert visitor.page.locator(".cog-refresh").count() == 0
    visitor.page.fill("#cog-q", "low")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**?q=low")
    visitor.button("pause", "low").click()
    visitor.page.get_by_text("Paused: low.").wait_for()
    assert visitor.page.url.endswith("?q=low")
    assert stage.ask(lambda: api.Queue("low").paused)
    visitor.page.get_by_role("link", name="low", exact=True).click()
    visitor.button("clear").click()
    visitor.page.get_by_role("button", name="Delete all jobs").click()
    visitor.page.get_by_text("1 job was deleted.").wait_for()
    visitor.open("/admin/django_cogworker/history/")
    visitor.page.get_by_text("PartnerDidNotAnswer").first.click()
    assert "<b>broke</b> & is not mended" in visitor.text()
    assert visitor.page.locator("time").first.inner_text() != ""
    visitor.picture("without-scripts")
