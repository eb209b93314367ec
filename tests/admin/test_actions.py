"""What people do on the pages: by POST, with a token and a permission, asked first where it destroys, written down."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.messages import get_messages
from django.test import Client

from django_cogworker.api import JobStack, PeriodicSet, Queue
from django_cogworker.features.stacks.wishes import answer, take_wish
from tests.admin.conftest import WORKER, add_worker, at
from tests.project.jobs import Append

pytestmark = pytest.mark.django_db

#: action -> page, thing, the finer permission, whether it asks first
ACTIONS = {
    "pause": ("queue", "default", "pause_queues", False),
    "resume": ("queue", "low", "pause_queues", False),
    "clear": ("queue", "default", "clear_queues", True),
    "run": ("periodic", "nightly", "steer_periodic", False),
    "disable": ("periodic", "nightly", "steer_periodic", False),
    "enable": ("periodic", "hourly", "steer_periodic", False),
    "quiet": ("worker", WORKER, "steer_workers", False),
    "stop": ("worker", WORKER, "steer_workers", True),
    "stacks": ("worker", WORKER, "steer_workers", False),
}


@pytest.fixture(autouse=True)
def prepared(busy):
    Queue("low").pause()
    PeriodicSet()["hourly"].disable()
    return busy


def state(client):
    """What actions change."""
    return (
        Queue("default").paused,
        Queue("low").paused,
        Queue("default").size,
        PeriodicSet().disabled(),
        client.get(f"cogworker:signal:{WORKER}"),
        client.get(f"cogworker:stacks:asked:{WORKER}"),
    )


def do(client, action, *, item=None, page=None, confirmed=True, **more):
    on, thing, _, asks = ACTIONS.get(action, (page, item, "", False))
    given = {"action": action, "item": thing if item is None else item, **more}
    if asks and confirmed:
        given["confirmed"] = "1"
    return client.post(at(page or on) + "act/", given)


def told(answer):
    return [str(each) for each in get_messages(answer.wsgi_request)]


# -- permissions and tokens


@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_act(prepared, holder, viewer, passer, admin, action):
    before, wanted = state(prepared), ACTIONS[action][2]
    others = {each[2] for each in ACTIONS.values()} - {wanted}
    stranger = do(Client(), action)
    assert stranger.status_code == 302
    assert "/login/" in stranger.headers["Location"]
    for each in (viewer, passer, holder(*others), holder(wanted, look=False)):
        assert do(each, action).status_code == 403
    assert state(prepared) == before
    assert LogEntry.objects.count() == 0
    assert do(holder(wanted), action).status_code == 302
    assert state(prepared) != before
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_manage_may_do_everything(prepared, holder, action):
    before = state(prepared)
    assert do(holder("manage_jobs", look=False), action).status_code == 302
    assert state(prepared) != before


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_done_without_a_token_or_by_get(prepared, admin, action):
    before = state(prepared)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    assert do(strict, action).status_code == 403
    page, item, _, _ = ACTIONS[action]
    assert admin.get(at(page) + f"act/?action={action}&item={item}&confirmed=1").status_code == 405
    assert state(prepared) == before


def test_a_button_of_a_page_is_all_that_is_needed(prepared, admin):
    """The form as a browser without scripts sends it, token and all, also from the refreshed part."""
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    for query in ("", "?_live=1"):
        Queue("default").resume()
        text = strict.get(at("queue", query=query)).content.decode()
        forms = re.findall(r'<form method="post".*?</form>', text, re.DOTALL)
        (form,) = (each for each in forms if 'value="pause"' in each)
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
        address = re.search(r'action="([^"]+)"', form)
        assert address is not None
        answer = strict.post(
            address[1], {name: html.unescape(each) for name, each in fields.items()}
        )
        assert answer.status_code == 302
        assert answer.headers["Location"] == at("queue")
        assert Queue("default").paused


def test_who_may_not_sees_no_buttons(prepared, viewer, holder):
    for page, item in (("queue", "default"), ("periodic", "nightly"), ("worker", WORKER)):
        for address in (at(page), at(page, item)):
            assert 'class="cog-form"' not in viewer.get(address).content.decode()
    text = holder("pause_queues").get(at("queue", "default")).content.decode()
    assert 'value="pause"' in text
    assert 'value="clear"' not in text


def test_unknown_actions_are_not_found(prepared, admin):
    assert do(admin, "explode", page="queue", item="x").status_code == 404
    assert do(admin, "stop", page="queue", item="x").status_code == 404


# -- going back


@pytest.mark.parametrize(
    ("back", "goes"),
    [
        ("/admin/django_cogworker/queue/?q=def&p=2", "/admin/django_cogworker/queue/?q=def&p=2"),
        ("https://evil.example/", "/admin/django_cogworker/queue/"),
        ("//evil.example/", "/admin/django_cogworker/queue/"),
        ("/\\evil.example/", "/admin/django_cogworker/queue/"),
        ("javascript:alert(1)", "/admin/django_cogworker/queue/"),
        ("", "/admin/django_cogworker/queue/"),
    ],
)
def test_an_action_goes_back_to_where_it_came_from_on_this_host(prepared, admin, back, goes):
    assert do(admin, "pause", back=back).headers["Location"] == goes
    asked = do(admin, "clear", back=back, confirmed=False).content.decode()
    assert f'href="{html.escape(goes)}"' in asked
    assert "evil" not in asked


# -- asking first


@pytest.mark.parametrize("action", [name for name, each in ACTIONS.items() if each[3]])
def test_what_destroys_asks_first_and_does_it_when_told(prepared, admin, action):
    before = state(prepared)
    asked = do(admin, action, confirmed=False)
    text = asked.content.decode()
    assert asked.status_code == 200
    assert "This cannot be undone" in text
    assert state(prepared) == before
    assert LogEntry.objects.count() == 0
    form = re.search(r'<form method="post".*?</form>', text[text.index("cog-panel") :], re.DOTALL)
    assert form is not None
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[0]))
    page = ACTIONS[action][0]
    assert admin.post(at(page) + "act/", fields).status_code == 302
    assert state(prepared) != before
    assert LogEntry.objects.get().action_flag == DELETION


def test_the_question_says_how_many_jobs_would_go(prepared, admin):
    for each in "xyz":
        Append.set(on_commit=False).perform_async(each)
    assert "all 4 jobs that wait on default" in do(admin, "clear", confirmed=False).content.decode()
    answer = do(admin, "clear")
    assert told(answer) == ["4 jobs were deleted."]
    assert Queue("default").size == 0


# -- what becomes of them


def test_a_log_entry_says_who_did_what_to_which(prepared, admin):
    do(admin, "pause")
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr, entry.action_flag) == ("default", "default", CHANGE)
    assert entry.get_change_message() == "Paused."
    assert entry.user.username == "root"
    assert entry.content_type is not None
    assert entry.content_type.model == "queue"
    # It leads to the queue, and the index of the admin shows it.
    assert entry.get_admin_url() == at("queue", "default")
    assert at("queue", "default") in admin.get("/admin/").content.decode()


@pytest.mark.parametrize(
    ("action", "item", "said"),
    [
        ("pause", "low", "Nothing to do: low is paused already."),
        ("resume", "a b", "Nothing to do: a b is not paused."),
        ("clear", "empty", "0 jobs were deleted."),
        ("quiet", "gone:1:x", "No such worker lives any more."),
        ("stacks", "gone:1:x", "No such worker lives any more."),
        ("disable", "none", "Nothing to do: none is disabled already, or no entry."),
        (
            "run",
            "none",
            "Nothing was enqueued: there is no such entry, or its job is unique and one waits.",
        ),
    ],
)
def test_what_changes_nothing_says_so_and_is_not_written_down(prepared, admin, action, item, said):
    assert told(do(admin, action, item=item)) == [said]
    assert LogEntry.objects.count() == 0


def test_run_now_enqueues_an_ordinary_job_and_tells_its_jid(prepared, admin):
    (text,) = told(do(admin, "run"))
    job = json.loads(prepared.lindex("cogworker:queue:default", 0))
    assert job["jid"] in text
    assert job["args"] == ["a"]
    assert not [each for each in job if "periodic" in each]


def test_a_disabled_entry_shows_it_and_the_search_survives(prepared, admin):
    answer = do(admin, "disable", back=at("periodic", query="?q=night"))
    text = admin.get(answer.headers["Location"]).content.decode()
    assert "Disabled: nightly." in text
    assert "Enable nightly" in text
    assert "hourly" not in text.replace("hourly-", "")


def test_all_workers_are_asked_at_once(prepared, admin):
    add_worker(prepared, "host2:1:0123456789ab")
    do(admin, "quiet", item="*")
    for each in (WORKER, "host2:1:0123456789ab"):
        assert prepared.get(f"cogworker:signal:{each}").startswith(b"quiet ")
    assert LogEntry.objects.count() == 2


def test_stacks_are_shown_as_soon_as_the_worker_has_answered(prepared, holder):
    client = holder("steer_workers")
    page = at("worker", WORKER)
    assert "answers with its next beat" not in client.get(page).content.decode()
    assert told(do(client, "stacks", back=page)) == [
        f"Asked where its jobs are; it answers with its next beat: {WORKER}."
    ]
    assert "Asked; the worker answers with its next beat." in client.get(page).content.decode()
    assert take_wish(WORKER)
    answer(WORKER, 1000.0, [JobStack("jid-of-it", "a.B", "default", 940.0, "<frame> x")], 3)
    text = client.get(page + "?_live=1").content.decode()
    for each in ("jid-of-it", "&lt;frame&gt; x", "1 min 0 s", "and 3 more"):
        assert each in text
    assert "Asked; the worker" not in text


def test_several_things_at_once_are_each_written_down(prepared, admin):
    Queue("low").resume()
    admin.post(at("queue") + "act/", {"action": "pause", "item": ["default", "low"]})
    assert Queue("default").paused
    assert Queue("low").paused
    assert {each.object_id for each in LogEntry.objects.all()} == {"default", "low"}
