"""What people do with one job on its page."""

from __future__ import annotations

import html
import json
import re
import time

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.messages import get_messages
from django.test import Client

from django_cogworker.api import AllJobs, DeadSet, RetrySet, ScheduledSet, seek
from tests.admin.conftest import add_failed, at
from tests.admin.test_jobs import JOB, hold

pytestmark = pytest.mark.django_db

#: action -> the finer permission, whether it asks first, what a job in the retry set becomes
ACTIONS = {
    "retry": ("retry_jobs", False, ("queue", "default")),
    "reschedule": ("move_jobs", False, ("retry", "default")),
    "move": ("move_jobs", False, ("retry", "low")),
    "kill": ("delete_jobs", True, ("dead", "default")),
    "delete": ("delete_jobs", True, None),
    "cancel": ("delete_jobs", True, None),
    "force": ("delete_jobs", True, None),
}
MORE = {"reschedule": {"minutes": "30"}, "move": {"to": "low"}}


@pytest.fixture(autouse=True)
def prepared(redis_client):
    add_failed(redis_client, "failing")
    return redis_client


def do(client, action, jid="failing", *, confirmed=True, **more):
    given = {"action": action, "item": jid, **MORE.get(action, {}), **more}
    if confirmed:
        given["confirmed"] = "1"
    return client.post(at("job") + "act/", given)


def told(answer) -> str:
    return " ".join(str(each) for each in get_messages(answer.wsgi_request))


def where(jid="failing"):
    seen = seek(jid).sighting
    return seen and (seen.place, seen.record.queue)


def everything(client):
    return {key: client.dump(key) for key in client.keys("*")}


@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_do_what_with_a_job(prepared, holder, viewer, passer, action):
    wanted, asks, becomes = ACTIONS[action]
    before = everything(prepared)
    others = {each[0] for each in ACTIONS.values()} - {wanted}
    assert do(Client(), action).status_code == 302
    for each in (viewer, passer, holder(*others), holder(wanted, look=False)):
        assert do(each, action).status_code == 403
    assert everything(prepared) == before
    assert LogEntry.objects.count() == 0
    allowed = holder(wanted)
    if asks:
        answer = do(allowed, action, confirmed=False)
        assert answer.status_code == 200
        assert "failing" in answer.content.decode()
        assert everything(prepared) == before
    assert do(allowed, action).status_code == 302
    assert where() == becomes
    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.user.username) == (
        "failing",
        allowed.get("/").wsgi_request.user.username,
    )
    assert entry.action_flag == (DELETION if becomes is None else CHANGE)
    assert entry.get_admin_url() == at("job", "failing")


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_done_with_a_job_without_a_token_or_by_get(prepared, admin, action):
    before = everything(prepared)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    assert do(strict, action).status_code == 403
    query = f"act/?action={action}&item=failing&confirmed=1"
    assert admin.get(at("job") + query).status_code == 405
    assert everything(prepared) == before


def test_the_forms_of_the_page_are_all_that_is_needed(prepared, admin):
    """As a browser without scripts sends them: the question carries on what the form said."""
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    for action, (_, asks, becomes) in ACTIONS.items():
        if action == "force":
            continue  # offered while it runs
        prepared.flushdb()
        add_failed(prepared, "failing")
        page = at("job", "failing")
        form = _form(strict.get(page).content.decode(), action)
        assert form["fields"]["seen"].startswith("retry/")
        if action == "move":
            form["fields"]["to"] = "low"
        answer = strict.post(form["address"], form["fields"])
        if asks:
            form = _form(answer.content.decode(), action)
            answer = strict.post(form["address"], form["fields"])
        assert answer.status_code == 302
        assert answer.headers["Location"] == page
        assert where() == becomes


def _form(text, action):
    forms = re.findall(r'<form method="post".*?</form>', text, re.DOTALL)
    (form,) = (each for each in forms if f'name="action" value="{action}"' in each)
    fields = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = re.search(r'name="(\w+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name:
            fields[name[1]] = html.unescape(value[1]) if value else ""
    address = re.search(r'action="([^"]+)"', form)
    assert address is not None
    return {"address": address[1], "fields": fields}


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        ("queue", ["move", "kill", "cancel", "delete"]),
        ("schedule", ["retry", "reschedule", "move", "kill", "cancel", "delete"]),
        ("retry", ["retry", "reschedule", "move", "kill", "cancel", "delete"]),
        ("dead", ["retry", "move", "delete"]),
        ("worker", ["cancel", "force"]),
    ],
)
def test_a_job_is_offered_what_fits_its_state(prepared, admin, viewer, holder, state, offered):
    add_failed(prepared, "died", "dead")
    hold(prepared, "running")
    jid = {
        "queue": JOB.perform_async("a"),
        "schedule": JOB.perform_in(60, "a"),
        "retry": "failing",
        "dead": "died",
        "worker": "running",
    }[state]
    assert jid is not None

    def buttons(client):
        text = client.get(at("job", jid)).content.decode()
        return re.findall(r'name="action" value="(\w+)"', text)

    assert buttons(admin) == offered
    assert buttons(viewer) == []
    assert buttons(holder("retry_jobs")) == [each for each in offered if each == "retry"]


@pytest.mark.parametrize(
    ("minutes", "seconds"), [("30", 1_800), ("0", 60), ("-5", 60), ("999999999", 10_080 * 60)]
)
def test_a_job_is_put_off_by_minutes_within_a_week(prepared, admin, minutes, seconds):
    (before,) = RetrySet()
    answer = do(admin, "reschedule", minutes=minutes)
    assert "is due at" in told(answer)
    (after,) = RetrySet()
    assert abs(after.at - time.time() - seconds) < 20
    assert after.raw == before.raw


@pytest.mark.parametrize(
    ("action", "more", "said"),
    [
        ("reschedule", {"minutes": "soon"}, "in how many minutes"),
        ("reschedule", {"minutes": ""}, "in how many minutes"),
        ("move", {"to": ""}, "Name the queue"),
        ("move", {"to": "a b"}, "“a b” can be no name of a queue"),
        ("move", {"to": "default"}, "it is there already"),
        ("retry", {"jid": "nobody"}, "does not wait any more"),
        ("retry", {"jid": ""}, "No job was named"),
        ("cancel", {"jid": ""}, "No job was named"),
    ],
)
def test_what_cannot_be_done_is_said_and_not_written_down(prepared, admin, action, more, said):
    before = everything(prepared)
    answer = do(admin, action, **more)
    assert answer.status_code == 302
    assert said in told(answer)
    assert LogEntry.objects.count() == 0
    assert everything(prepared) == before


def test_a_dead_job_is_retried_once(prepared, admin):
    add_failed(prepared, "died", "dead")
    (entry,) = DeadSet()
    seen = seek("died").sighting
    assert seen is not None
    assert "is on the queue default" in told(do(admin, "retry", "died", seen=seen.seen))
    second = do(admin, "retry", "died", seen=seen.seen)
    assert "it is on its queue already" in told(second)
    (job,) = AllJobs(["queue"]).heads().entries
    assert job.record.failures == entry.failures == 1
    assert LogEntry.objects.count() == 1


def test_a_scheduled_job_runs_now(prepared, admin):
    jid = JOB.perform_in(3_600, "a")
    do(admin, "retry", jid)
    assert len(ScheduledSet()) == 0
    assert where(jid) == ("queue", "default")


def test_a_running_job_is_asked_to_end(prepared, admin):
    hold(prepared, "running")
    answer = do(admin, "cancel", "running")
    assert "has been told" in told(answer)
    do(admin, "force", "running")
    assert [each.change_message for each in LogEntry.objects.order_by("pk")] == [
        "Cancelled.",
        "Cancelled by force.",
    ]
    assert "a worker has it" in told(do(admin, "delete", "running"))


def test_a_job_that_runs_out_of_sight_can_be_cancelled(prepared, admin):
    """As in basic mode, where what workers have is not in Redis."""
    prepared.hset("cogworker:status:hidden", mapping={"state": "working", "class": "a.B"})
    text = admin.get(at("job", "hidden")).content.decode()
    assert re.findall(r'name="action" value="(\w+)"', text) == ["cancel", "force"]
    assert "has been told" in told(do(admin, "cancel", "hidden"))


def test_a_job_that_is_over_is_not_cancelled(prepared, admin):
    prepared.hset("cogworker:status:over", mapping={"state": "complete", "class": "a.B"})
    assert "is over" in told(do(admin, "cancel", "over"))
    assert LogEntry.objects.count() == 0


def test_a_job_without_a_queue_stays_where_it_is(prepared, admin):
    job = json.dumps({"class": "a.B", "jid": "homeless", "args": [], "v": 1})
    prepared.zadd("cogworker:retry", {job: 5})
    answer = do(admin, "retry", "homeless")
    assert "it names no queue" in told(answer)
    assert prepared.zscore("cogworker:retry", job) == 5


def test_what_is_no_job_is_deleted(prepared, admin):
    prepared.zadd("cogworker:retry", {b"{broken": 5})
    jid = next(each.jid for each in RetrySet() if each.problem)
    assert "it can only be deleted" in told(do(admin, "retry", jid))
    do(admin, "delete", jid)
    assert [each.jid for each in RetrySet()] == ["failing"]
