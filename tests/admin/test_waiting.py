"""Jobs that wait, on the pages: what is shown, what can be done with one, with some, and with all that match."""

from __future__ import annotations

import html
import json
import re
import time
from itertools import chain
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.core import signing
from django.test import Client

from django_cogworker.admin import Column, register_column
from django_cogworker.admin.columns import withdraw_column
from django_cogworker.admin.waiting import bulk
from django_cogworker.admin.waiting import page as waiting_page
from django_cogworker.api import BulkAction, DeadSet, Queue, RetrySet, ScheduledSet
from tests.admin import test_actions
from tests.admin.conftest import at
from tests.redis.waiting_jobs import DEAD, RETRY, SCHEDULE, enqueue, in_set, jids, put, queued
from tests.support.round_trips import counted

pytestmark = pytest.mark.django_db

PLACES = {"scheduled": SCHEDULE, "retry": RETRY, "dead": DEAD}
SETS = {"scheduled": ScheduledSet, "retry": RetrySet, "dead": DeadSet}
#: Page, action, what else it wants, the permission for it, whether it asks first.
DEEDS = [
    ("scheduled", "run", {}, "retry_jobs", False),
    ("scheduled", "reschedule", {"minutes": "30"}, "move_jobs", False),
    ("scheduled", "move", {"to": "other"}, "move_jobs", False),
    ("scheduled", "delete", {}, "delete_jobs", True),
    ("retry", "retry", {}, "retry_jobs", False),
    ("retry", "reschedule", {"minutes": "30"}, "move_jobs", False),
    ("retry", "move", {"to": "other"}, "move_jobs", False),
    ("retry", "kill", {}, "delete_jobs", False),
    ("retry", "delete", {}, "delete_jobs", True),
    ("dead", "retry", {}, "retry_jobs", False),
    ("dead", "move", {"to": "other"}, "move_jobs", False),
    ("dead", "delete", {}, "delete_jobs", True),
    ("queue", "move", {"to": "other", "of": "default"}, "move_jobs", False),
    ("queue", "delete", {"of": "default"}, "delete_jobs", True),
]
every_deed = pytest.mark.parametrize(
    ("page", "action", "more", "permission", "asks"), DEEDS, ids=[f"{a}-{b}" for a, b, *_ in DEEDS]
)


def fill(client, page, *names, **fields):
    if page == "queue":
        return enqueue(client, *names, **fields)
    start = time.time() - 10_000 if page == "dead" else time.time() + 1_000
    return put(client, PLACES[page], *names, at=start, **fields)


def shelf(page):
    return Queue("default") if page == "queue" else SETS[page]()


def handles(page, *wanted):
    return [each.handle for each in shelf(page) if not wanted or each.jid in wanted]


def do(client, page, action, *, confirmed=True, **more):
    given = {"action": action, **more}
    if confirmed:
        given["confirmed"] = "1"
    return client.post(at(page) + "act/", given)


def told(answer):
    """The message of this answer, which is the last one."""
    return test_actions.told(answer)[-1:]


def everything(client):
    return {key: client.dump(key) for key in client.keys("*") if b"pushed" not in key}


def shown(client, page, query=""):
    item = "default" if page == "queue" else ""
    answer = client.get(at(page, item, query))
    return jids([each.item for each in answer.context["rows"]]), answer


def many(count, first="j"):
    return [f"{first}{number:04}" for number in range(count)]


# -- what is shown


def test_p248_the_newest_dead_and_the_next_due_come_first(redis_client, viewer):
    for page in PLACES:
        fill(redis_client, page, "a", "b", "c")
    assert shown(viewer, "dead")[0] == ["c", "b", "a"]
    assert shown(viewer, "retry")[0] == ["a", "b", "c"]
    assert shown(viewer, "scheduled")[0] == ["a", "b", "c"]


@pytest.mark.parametrize("page", [*PLACES, "queue"])
def test_long_lists_come_in_parts_with_a_cursor(redis_client, viewer, page):
    fill(redis_client, page, *many(60))
    seen, query = [], ""
    for part in (25, 25, 10):
        found, answer = shown(viewer, page, query)
        assert len(found) == part
        seen += found
        query = answer.context["pager"].next
    assert query == ""
    assert sorted(seen) == many(60)
    assert shown(viewer, page, answer.context["pager"].first)[0] == seen[:25]
    assert "60 jobs in all" in answer.content.decode()
    assert shown(viewer, page, "?cursor=nonsense")[0] == seen[:25]


@pytest.mark.parametrize("page", [*PLACES, "queue"])
def test_a_filter_leaves_what_matches(redis_client, viewer, page):
    fill(redis_client, page, *many(5))
    extra = {"args": ["Needle", 7], "tags": ["red"], "class": "shop.Odd"}
    if page != "queue":
        extra["queue"] = "mail"
    fill(redis_client, page, "odd", **extra)
    queries = ["q=needle", "class=odd", "args=needle", "jid=odd", "tag=red", "class=shop&args=7"]
    if page != "queue":
        queries.append("queue=mail")
    for query in queries:
        assert shown(viewer, page, f"?{query}")[0] == ["odd"], query
    found, answer = shown(viewer, page, "?args=nowhere")
    assert found == []
    assert "No job here matches; 6 were looked through." in answer.content.decode()
    assert 'value="nowhere"' in answer.content.decode()


@pytest.mark.parametrize("page", ["retry", "dead"])
def test_failures_are_found_by_error_and_by_group(redis_client, viewer, page):
    fill(redis_client, page, "a", "b")
    fill(redis_client, page, "odd", error_class="shop.Refused", error_group="3f9a0c51d2e8")
    assert shown(viewer, page, "?error=refused")[0] == ["odd"]
    found, answer = shown(viewer, page, "?error_group=3f9a0c51d2e8")
    assert found == ["odd"]
    assert "<code>3f9a0c51d2e8</code>" in answer.content.decode()
    # The form keeps it, and so does an action for all that match.
    assert 'type="hidden" name="error_group" value="3f9a0c51d2e8"' in answer.content.decode()


def test_a_search_says_how_far_it_came_and_goes_on(redis_client, viewer, monkeypatch):
    monkeypatch.setattr(waiting_page, "BUDGET", 0)
    fill(redis_client, "retry", *many(250))
    redis_client.zadd(RETRY, {b'{"jid":"odd","class":"x","queue":"q","args":["needle"]}': 9e9})
    found, answer = shown(viewer, "retry", "?args=needle")
    assert found == []
    assert "100 jobs were looked through for this; there are more." in answer.content.decode()
    for _ in range(5):
        assert "args=needle" in answer.context["pager"].next
        found, answer = shown(viewer, "retry", answer.context["pager"].next)
        if found:
            break
    assert found == ["odd"]


def test_what_was_searched_stands_still_and_the_head_of_a_list_does_not(redis_client, viewer):
    for page in (*PLACES, "queue"):
        assert "data-cog-poll" in shown(viewer, page)[1].content.decode()
        for query in ("?jid=x", "?cursor=0_1_5.0"):
            assert "data-cog-poll" not in shown(viewer, page, query)[1].content.decode()


@pytest.mark.parametrize("page", [*PLACES, "queue"])
def test_p266_what_is_no_job_can_only_be_deleted(redis_client, admin, page):
    if page == "queue":
        redis_client.sadd("cogworker:queues", "default")
        redis_client.lpush("cogworker:queue:default", b"<no job>")
    else:
        redis_client.zadd(PLACES[page], {b"<no job>": time.time()})
    (jid,), answer = shown(admin, page)
    text = answer.content.decode()
    assert "(unparseable)" in text
    assert "&lt;no job&gt;" in text
    row = text[text.index("<tbody>") : text.index("</tbody>")]
    assert re.findall(r'name="action" value="(\w+)"', row) == ["delete"]
    (handle,) = handles(page)
    others = {each[1]: each[2] for each in DEEDS if each[0] == page and each[1] != "delete"}
    of = {"of": "default"} if page == "queue" else {}
    for action, more in others.items():
        answer = do(admin, page, action, item=handle, **more)
        assert told(answer) == ["1 job was left alone: it is no job; it can only be deleted."]
    assert LogEntry.objects.count() == 0
    assert told(do(admin, page, "delete", item=handle, **of)) == ["1 job was deleted."]
    assert LogEntry.objects.get().object_id == jid
    assert shown(admin, page)[0] == []


def test_p266_a_retry_without_a_queue_is_left_in_place_and_says_so_once(redis_client, admin):
    redis_client.zadd(RETRY, {b'{"jid":"lost","class":"x","args":[]}': 5})
    text = shown(admin, "retry")[1].content.decode()
    row = text[text.index("<tbody>") : text.index("</tbody>")]
    assert 'value="retry"' not in row
    assert 'value="delete"' in row
    before = everything(redis_client)
    answer = do(admin, "retry", "retry", item=handles("retry"))
    assert everything(redis_client) == before
    said = "1 job was left alone: it names no queue."
    assert said in admin.get(answer.headers["Location"]).content.decode()
    assert said not in admin.get(answer.headers["Location"]).content.decode()


def test_p252_which_page_offers_what(redis_client, admin):
    for page in (*PLACES, "queue"):
        fill(redis_client, page, "a")
        text = shown(admin, page)[1].content.decode()
        row = text[text.index("<tbody>") : text.index("</tbody>")]
        offered = re.findall(r'name="action" value="(\w+)"', row)
        assert sorted(offered) == sorted(each[1] for each in DEEDS if each[0] == page)
    assert do(admin, "dead", "reschedule", item=handles("dead"), minutes="5").status_code == 404


def test_sensitive_arguments_are_masked_everywhere(redis_client, admin):
    for page in (*PLACES, "queue"):
        fill(redis_client, page, "a", kwargs={"password": "tops3cret", "to": "bob"})
        if page != "queue":
            wrapped = {"class": "(unparseable)", "jid": "w", "raw_payload": '{"token":"tops3cret"}'}
            junk = b'{"password":"tops3cret"}'
            redis_client.zadd(PLACES[page], {junk: 5, json.dumps(wrapped): 6})
        _, answer = shown(admin, page)
        more = {"of": "default"} if page == "queue" else {}
        asked = do(admin, page, "delete", item=[*handles(page), "5.0~x"], confirmed=False, **more)
        for each in (answer, asked):
            text = each.content.decode()
            assert "tops3cret" not in text
            assert "password=&quot;***&quot;, to=&quot;bob&quot;" in text


def test_an_app_adds_a_column_to_the_jobs_of_a_queue(redis_client, viewer):
    enqueue(redis_client, "abc")
    column = Column("Shouted", lambda job: job.jid.upper())
    register_column("queue_jobs", column)
    try:
        text = shown(viewer, "queue")[1].content.decode()
    finally:
        withdraw_column("queue_jobs", column)
    assert '<th scope="col">Shouted</th>' in text
    assert "<td>ABC</td>" in text


# -- one


@every_deed
def test_who_may_do_it(redis_client, holder, viewer, passer, page, action, more, permission, asks):
    fill(redis_client, page, "a")
    given = {"item": handles(page), **more}
    before = everything(redis_client)
    others = {"retry_jobs", "move_jobs", "delete_jobs", "clear_queues"} - {permission}
    for each in (viewer, passer, holder(*others), holder(permission, look=False)):
        assert do(each, page, action, **given).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = holder(permission).cookies
    assert do(strict, page, action, **given).status_code == 403
    assert holder(permission).get(at(page) + "act/", {"action": action, **given}).status_code == 405
    assert everything(redis_client) == before
    assert LogEntry.objects.count() == 0
    assert do(holder(permission), page, action, **given).status_code == 302
    assert everything(redis_client) != before


@every_deed
def test_one_job_by_the_form_of_its_row(redis_client, admin, page, action, more, permission, asks):
    """As a browser without scripts sends it, token and all."""
    fill(redis_client, page, "a", "b")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    before = everything(redis_client)
    text = shown(strict, page)[1].content.decode()
    row = next(each for each in text.split("<tr>") if "<code>a</code>" in each)
    form = next(
        each
        for each in re.findall(r'<form method="post".*?</form>', row, re.DOTALL)
        if f'value="{action}"' in each
    )
    assert "job a" in form  # for screen readers
    answer = submit(strict, form, **more)
    if asks:
        assert answer.status_code == 200
        text = answer.content.decode()
        assert "This cannot be undone" in text
        assert "<code>a</code>" in text
        assert everything(redis_client) == before
        answer = submit(strict, text[text.index("cog-choice") - 80 :])
    assert answer.status_code == 302
    assert len(told(answer)) == 1
    assert told(answer)[0].startswith("1 job")
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr) == ("a", "a")
    assert entry.action_flag == (DELETION if action == "delete" else CHANGE)
    assert entry.user.username == "root"
    assert everything(redis_client) != before
    places = {name: in_set(redis_client, key) for name, key in PLACES.items()}
    places["queue"] = queued(redis_client)
    assert "b" in places[page]
    if action in ("retry", "run"):
        assert places["queue"] == ["a"]
    if action == "kill":
        assert places["dead"] == ["a"]
    if action == "move":
        assert (queued(redis_client, "other") == ["a"]) == (page == "queue")
        assert entry.get_change_message() == "Moved to the queue other."
    if action == "delete":
        assert sorted(chain(*places.values())) == ["b"]


def submit(client, text, **more):
    """The first form in the text, with what is typed in."""
    form = re.search(r"<form .*?</form>", text, re.DOTALL)
    assert form is not None
    fields = {}
    for tag in re.findall(r"<input[^>]*>", form[0]):
        name, value = (re.search(rf'{each}="([^"]*)"', tag) for each in ("name", "value"))
        if name:
            fields[name[1]] = html.unescape(value[1]) if value else ""
    address = re.search(r'action="([^"]+)"', form[0])
    assert address is not None
    return client.post(address[1], {**fields, **more})


@pytest.mark.parametrize("page", ["retry", "dead"])
def test_p248_p249_a_retry_is_on_its_queue_at_once_and_twice_moves_it_once(
    redis_client, admin, page
):
    fill(redis_client, page, "a")
    given = {"item": handles(page)}
    assert told(do(admin, page, "retry", **given)) == ["1 job is on its queue again."]
    again = do(admin, page, "retry", **given)
    assert told(again) == ["1 job was not there any more, or had changed."]
    assert queued(redis_client) == ["a"]
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("page", ["scheduled", "retry"])
@pytest.mark.parametrize(
    ("typed", "minutes"), [("30", 30), ("999999999", 10_080), ("-5", 1), ("0", 1)]
)
def test_p250_reschedule_sets_the_time_of_the_same_entry(redis_client, admin, page, typed, minutes):
    (raw,) = fill(redis_client, page, "a")
    before = time.time()
    do(admin, page, "reschedule", item=handles(page), minutes=typed)
    ((member, score),) = redis_client.zrange(PLACES[page], 0, -1, withscores=True)
    assert member == raw
    assert before + minutes * 60 <= score <= time.time() + minutes * 60
    word = "minute" if minutes == 1 else "minutes"
    assert LogEntry.objects.get().get_change_message() == f"Due {minutes:,} {word} after this."


def test_p250_what_is_gone_stays_gone(redis_client, admin):
    fill(redis_client, "retry", "a")
    given = {"item": handles("retry"), "minutes": "30"}
    redis_client.delete(RETRY)
    answer = do(admin, "retry", "reschedule", **given)
    assert told(answer) == ["1 job was not there any more, or had changed."]
    assert redis_client.exists(RETRY) == 0


@pytest.mark.parametrize(
    ("action", "more", "said"),
    [
        ("reschedule", {}, "Say in how many minutes: a whole number, at most 10,080."),
        ("reschedule", {"minutes": "soon"}, "Say in how many minutes"),
        ("reschedule", {"minutes": "soon", "scope": "all"}, "Say in how many minutes"),
        ("move", {}, "Say to which queue."),
        ("move", {"to": "a b"}, "“a b” can be no name of a queue"),
        ("move", {"to": "default"}, "1 job was left alone: it is there already."),
    ],
)
def test_what_cannot_be_meant_is_told(redis_client, admin, action, more, said):
    fill(redis_client, "retry", "a")
    before = everything(redis_client)
    answer = do(admin, "retry", action, item=handles("retry"), confirmed=False, **more)
    assert told(answer)[0].startswith(said)
    assert everything(redis_client) == before
    assert LogEntry.objects.count() == 0


def test_a_handle_or_a_queue_that_cannot_be_is_not_found(redis_client, admin):
    assert do(admin, "retry", "retry", item="nonsense").status_code == 404
    assert do(admin, "queue", "delete", item="0~abc", of="a b").status_code == 404


# -- some


def test_the_selected_ones_are_done_together_and_written_down_one_by_one(redis_client, admin):
    fill(redis_client, "dead", "a", "b", "c", "d")
    gone = handles("dead", "d")
    redis_client.zremrangebyrank(DEAD, 3, 3)
    redis_client.zadd(DEAD, {b"junk": 5})
    junk = handles("dead")[-1:]
    with counted() as trips:
        answer = do(admin, "dead", "retry", item=[*handles("dead", "a", "c"), *gone, *junk])
    assert told(answer) == [
        "2 jobs are on their queues again. 1 job was not there any more, or had changed. "
        "1 job was left alone: it is no job; it can only be deleted."
    ]
    assert sorted(queued(redis_client)) == ["a", "c"]
    assert {each.object_id for each in LogEntry.objects.all()} == {"a", "c"}
    assert trips.number <= 3


def test_boxes_and_buttons_of_a_list_belong_together(redis_client, admin, viewer):
    fill(redis_client, "retry", "a", "b")
    text = shown(admin, "retry")[1].content.decode()
    boxes = re.findall(r'<input type="checkbox" name="item" value="([^"]+)" form="cog-jobs"', text)
    assert boxes == handles("retry")
    assert 'id="cog-jobs"' in text
    assert 'aria-label="Select job a"' in text
    assert re.search(r'data-cog-all="item"[^>]* hidden>', text)  # a script shows it
    text = shown(viewer, "retry")[1].content.decode()
    assert "checkbox" not in text
    assert "cog-jobs" not in text


def test_nothing_selected_is_told(redis_client, admin):
    fill(redis_client, "retry", "a")
    for action in ("retry", "delete"):
        assert told(do(admin, "retry", action, confirmed=False)) == ["Nothing was selected."]


def test_a_question_shows_some_and_says_how_many(redis_client, admin):
    fill(redis_client, "dead", *many(8))
    answer = do(admin, "dead", "delete", item=handles("dead"), confirmed=False)
    text = answer.content.decode()
    assert "Delete 8 jobs?" in text
    assert len(re.findall(r"<code>j\d+</code>", text)) == 5
    assert "and 3 more" in text
    assert text.count('name="item"') == 8


def test_p248_delete_takes_the_record_of_attempts_along(redis_client, admin):
    fill(redis_client, "dead", "a", "b", "c")
    for each in "abc":
        redis_client.rpush(f"cogworker:job_attempts:{each}", "x")
    do(admin, "dead", "delete", item=handles("dead", "a"))
    kept = {b"cogworker:job_attempts:b", b"cogworker:job_attempts:c"}
    assert set(redis_client.keys("cogworker:job_attempts:*")) == kept
    run_all(admin, do(admin, "dead", "delete", scope="all"))
    assert redis_client.keys("cogworker:job_attempts:*") == []
    assert len(DeadSet()) == 0


# -- all that match


def run_all(client, answer, live=False):
    """Step after step, as the button or the script asks for them; how many there were."""
    steps = 1
    while "data-cog-step>" in answer.content.decode():
        assert answer.status_code == 200
        text = answer.content.decode()
        start = text.index("data-cog-step>")
        answer = submit(
            client, text[text.rindex("<form", 0, start) :], **({"_live": "1"} if live else {})
        )
        steps += 1
    assert steps < 50
    return answer, steps


@every_deed
def test_all_that_match_asks_first_and_leaves_the_others(
    redis_client, admin, page, action, more, permission, asks
):
    fill(redis_client, page, *many(7, "odd"), tags=["red"])
    fill(redis_client, page, *many(3, "other"))
    before = everything(redis_client)
    given = {"scope": "all", "filter": "tag=red", **more}
    answer = do(admin, page, action, confirmed=False, **given)
    text = answer.content.decode()
    assert re.search(r"(?:Put|Delete|Let|Move) 7 jobs .*\?|Delete 7 jobs\?", text)
    assert "All that match: Tag: red." in text
    assert everything(redis_client) == before
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    answer, _ = run_all(strict, submit(admin, text[text.index("cog-choice") - 80 :]))
    progress = answer.context["progress"]
    assert (progress.done, progress.gone, progress.refused, progress.finished) == (7, 0, {}, True)
    assert "Finished." in answer.content.decode()
    left = [each.jid for each in shelf(page) if each.jid.startswith("odd")]
    stays = action == "reschedule" or (action == "move" and page != "queue")
    assert len(left) == (7 if stays else 0)
    assert len([each for each in shelf(page) if each.jid.startswith("other")]) == 3
    entry = LogEntry.objects.get()
    assert entry.object_id == ("default" if page == "queue" else "")
    assert "(Tag: red): 7 done, 0 gone, 0 newer, 0 refused." in entry.get_change_message()


def test_p246_retry_all_of_one_queue(redis_client, admin):
    fill(redis_client, "retry", "a", "b", queue="mail")
    fill(redis_client, "retry", "c", queue="other")
    text = admin.get(at("queue", "mail")).content.decode()
    link = re.search(r'href="([^"]+/retry/\?queue=mail)"', text)
    assert link is not None
    context = admin.get(link[1]).context
    run_all(admin, do(admin, "retry", "retry", scope="all", filter=context["filter"]))
    assert sorted(queued(redis_client, "mail")) == ["a", "b"]
    assert in_set(redis_client, RETRY) == ["c"]
    assert "No job here matches" in admin.get(link[1]).content.decode()


@pytest.mark.parametrize("live", [False, True])
def test_it_goes_step_by_step_and_one_log_entry_follows(redis_client, admin, monkeypatch, live):
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "dead", *many(500), created_at=1.0)
    redis_client.zadd(DEAD, {b'{"jid":"lost","class":"x","args":[]}': 5})
    answer = do(admin, "dead", "retry", scope="all", back=at("dead", query="?q="))
    assert "100 of 501 looked at" in answer.content.decode()
    message = LogEntry.objects.get().get_change_message()
    assert "100 done" in message
    assert "Not finished" in message
    answer, steps = run_all(admin, answer, live)
    assert steps == 6
    text = answer.content.decode()
    assert ("<html" in text) is not live
    assert "501 of 501 looked at" in text
    assert re.search(r"it names no queue</td><td[^>]*>1<", text)
    assert re.search(r"shop\.Gone</td><td[^>]*>500<", text)
    assert f'href="{at("dead")}?q="' in text
    assert len(queued(redis_client)) == 500
    message = LogEntry.objects.get().get_change_message()
    assert message == ("Retry, all that match (everything): 500 done, 0 gone, 0 newer, 1 refused.")


def test_a_state_is_nobody_elses_and_cannot_be_made_up(redis_client, admin, holder, monkeypatch):
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "dead", *many(300))
    state = do(admin, "dead", "delete", scope="all").context["state"]
    left = len(DeadSet())
    assert left == 200
    step = at("dead") + "step/"
    assert holder().post(step, {"state": state}).status_code == 302
    for each in ("", "junk", state[:-1] + "x", signing.dumps(["1", "dead", {}])):
        answer = admin.post(step, {"state": each})
        assert answer.headers["Location"] == at("dead")
        assert told(answer)[0].startswith("This cannot be continued.")
    assert admin.post(at("retry") + "step/", {"state": state}).status_code == 302
    assert admin.get(step).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    assert strict.post(step, {"state": state}).status_code == 403
    assert len(DeadSet()) == left
    monkeypatch.setattr(bulk, "MAX_AGE", -1)
    assert admin.post(step, {"state": state}).status_code == 302
    assert len(DeadSet()) == left


def test_an_older_state_takes_nothing_back(redis_client, admin, monkeypatch):
    """Sent again, or from another tab: before the end, and after it."""
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "dead", *many(500))
    first = do(admin, "dead", "delete", scope="all").context["state"]
    step = at("dead") + "step/"
    second = admin.post(step, {"state": first}).context["state"]
    message, left = LogEntry.objects.get().change_message, len(DeadSet())
    assert "200 done" in message
    answer = admin.post(step, {"state": first})
    assert answer.headers["Location"] == at("dead")
    assert told(answer)[0].startswith("This has gone on without this page")
    assert (LogEntry.objects.get().change_message, len(DeadSet())) == (message, left)
    while second:
        answer = admin.post(step, {"state": second})
        last, second = second, answer.context["state"]
    message = LogEntry.objects.get().change_message
    assert "500 done" in message
    for each in (first, last):
        assert told(admin.post(step, {"state": each}))
        assert LogEntry.objects.get().change_message == message


def test_of_two_tabs_that_go_on_at_once_one_is_told(redis_client, admin, monkeypatch):
    """Also where the database cannot lock a row: there the second is found out by what the entry says."""
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "dead", *many(500))
    state = do(admin, "dead", "delete", scope="all").context["state"]
    step = at("dead") + "step/"
    real = BulkAction.step
    inner: list[Any] = []

    def meanwhile(action, budget):
        if not inner:
            inner.append(None)
            inner[0] = admin.post(step, {"state": state})
        return real(action, budget)

    monkeypatch.setattr(BulkAction, "step", meanwhile)
    answer = admin.post(step, {"state": state})
    assert inner[0].status_code == 200
    assert answer.status_code == 302
    assert "200 done" in LogEntry.objects.get().change_message


def test_where_somebody_deleted_the_log_entry_it_goes_on(redis_client, admin, monkeypatch):
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "dead", *many(250))
    answer = do(admin, "dead", "delete", scope="all")
    LogEntry.objects.all().delete()
    run_all(admin, answer)
    assert len(DeadSet()) == 0


@pytest.mark.parametrize(("page", "of"), [("dead", "anything"), ("queue", "nosuch"), ("queue", "")])
def test_what_a_request_calls_a_queue_does_not_come_into_the_log(redis_client, admin, page, of):
    fill(redis_client, page, "a")
    answer = do(admin, page, "delete", scope="all", of=of)
    assert answer.status_code == 404
    assert not LogEntry.objects.exists()


def test_who_lost_the_permission_does_not_go_on(redis_client, holder, monkeypatch):
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "dead", *many(300))
    client = holder("delete_jobs")
    state = do(client, "dead", "delete", scope="all").context["state"]
    from django.contrib.auth.models import Permission, User

    user = User.objects.get()
    user.user_permissions.remove(Permission.objects.get(codename="delete_jobs"))
    assert client.post(at("dead") + "step/", {"state": state}).status_code == 403
    assert len(DeadSet()) == 200


def test_what_comes_after_the_beginning_is_left_alone(redis_client, admin, monkeypatch):
    monkeypatch.setattr(bulk, "BUDGET", 0)
    fill(redis_client, "scheduled", *many(150), created_at=1.0)
    answer = do(admin, "scheduled", "delete", scope="all")
    late = time.time() + 5
    redis_client.zadd(SCHEDULE, {json.dumps({"jid": "new", "class": "x", "created_at": late}): 5})
    answer, _ = run_all(admin, answer)
    assert answer.context["progress"].newer == 1
    assert in_set(redis_client, SCHEDULE) == ["new"]


def test_a_question_for_all_says_where_it_did_not_look_everywhere(redis_client, admin, monkeypatch):
    monkeypatch.setattr(bulk, "COUNTING", 0)
    fill(redis_client, "dead", *many(300))
    answer = do(admin, "dead", "delete", scope="all", filter="class=gone", confirmed=False)
    text = answer.content.decode()
    assert "Delete 100 or more jobs?" in text
    assert "Only 100 were looked at so far." in text
    text = do(admin, "dead", "delete", scope="all", confirmed=False).content.decode()
    assert "Delete 300 jobs?" in text


# -- size


@pytest.mark.parametrize("page", [*PLACES, "queue"])
def test_a_page_is_a_few_round_trips_however_much_lies_there(redis_client, admin, page):
    def trips():
        with counted() as found:
            assert shown(admin, page)[1].status_code == 200
        return found.number

    fill(redis_client, page, "a")
    trips()  # connections are open then
    few = trips()
    fill(redis_client, page, *many(5_000))
    assert trips() == few <= 6
