"""The page of all jobs and the page of each: what they show of a job in each state, and how it is found."""

from __future__ import annotations

import base64
import html
import json
import re
import time
import zlib

import pytest

from django_cogworker.admin.pages import job_detail, jobs
from django_cogworker.features.stacks import wishes
from tests.admin.conftest import CLASS, WORKER, add_failed, add_worker, at
from tests.project.jobs import Append
from tests.support.round_trips import counted

pytestmark = pytest.mark.django_db

JOB = Append.set(on_commit=False)
JID = "0123456789abcdef01234567"


def hold(client, jid: str, ago: float = 5.0, **more) -> None:
    """The worker has it."""
    add_worker(client, WORKER)
    job = {"class": CLASS, "jid": jid, "queue": "low", "args": ["x"], "v": 1, **more}
    taken = f"{int((time.time() - ago) * 1000)} low\n{json.dumps(job)}"
    client.hset(f"cogworker:workers:{WORKER}", "1", taken)
    client.hset("cogworker:holders", WORKER, 2)


def shown(answer) -> list[str]:
    """The jids of the table."""
    return [row.item.jid for row in answer.context["rows"]]


def text_of(answer) -> str:
    return answer.content.decode()


# -- all jobs


def test_all_places_are_in_one_table_and_it_says_that_the_order_is_approximate(
    redis_client, viewer
):
    hold(redis_client, "running")
    add_failed(redis_client, "failing")
    add_failed(redis_client, "died", "dead")
    waiting, later = JOB.perform_async("a"), JOB.perform_in(7_200, "b")
    answer = viewer.get(at("job"))
    assert shown(answer) == ["running", waiting, "died", "failing", later]
    text = text_of(answer)
    for word in (
        "running",
        "enqueued",
        "dead",
        "retrying",
        "scheduled",
        "The order is approximate",
    ):
        assert word in text
    assert "5 of 5 jobs" in text
    for state, jid in {"worker": "running", "queue": waiting, "dead": "died"}.items():
        assert shown(viewer.get(at("job", query=f"?state={state}"))) == [jid]
    assert len(shown(viewer.get(at("job", query="?state=nonsense")))) == 5


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("job_class=append", ["running", "failing", "died"]),
        ("arguments=<i>X", ["failing", "died"]),
        ("jid=ail", ["failing"]),
        ("error=refused", ["failing", "died"]),
        ("error=refused&state=dead", ["died"]),
        ("queue=low", ["running"]),
        ("tag=red", ["failing", "died"]),
        ("error_group=0123456789ab", ["failing", "died"]),
        ("anything=RUN", ["running"]),
        ("anything=nowhere", []),
        ("cursor=nonsense&tag=red", ["failing", "died"]),
    ],
)
def test_jobs_are_searched_on_the_server(redis_client, viewer, query, found):
    hold(redis_client, "running")
    add_failed(redis_client, "failing")
    add_failed(redis_client, "died", "dead")
    answer = viewer.get(at("job", query=f"?{query}"))
    assert shown(answer) == found
    assert ("No job matches" in text_of(answer)) == (not found)
    assert "data-cog-poll" not in text_of(answer)


def test_a_search_that_runs_out_of_time_says_how_far_it_came_and_goes_on(
    redis_client, viewer, monkeypatch
):
    monkeypatch.setattr(jobs, "BUDGET", 0)
    for number in range(250):
        add_failed(redis_client, f"job{number}", tags=["last"] if number == 249 else [])
    found, address, steps = [], at("job", query="?tag=last"), 0
    while address:
        answer = viewer.get(address)
        found += shown(answer)
        goes_on = answer.context["pager"].next
        if goes_on and not shown(answer):
            assert "jobs were looked through for this; there are more" in text_of(answer)
            assert html.escape(goes_on) in text_of(answer)
        address = at("job", query=goes_on) if goes_on else ""
        steps += 1
    assert found == ["job249"]
    assert steps > 2


def test_one_place_is_gone_through_to_its_end(redis_client, viewer):
    for number in range(120):
        add_failed(redis_client, f"job{number}", "dead")
    answer = viewer.get(at("job", query="?state=dead"))
    assert "50 of 120 jobs" in text_of(answer)
    found, goes_on = [], answer.context["begin"]
    while goes_on:
        answer = viewer.get(at("job", query=goes_on))
        found += shown(answer)
        goes_on = answer.context["pager"].next
    assert sorted(found) == sorted(f"job{number}" for number in range(120))
    assert answer.context["pager"].first == "?state=dead"


@pytest.mark.parametrize("query", [f"anything={JID}", f"jid={JID}", f"anything=+{JID.upper()}+"])
def test_a_whole_jid_goes_straight_to_its_page(redis_client, viewer, query):
    answer = viewer.get(at("job", query=f"?{query}"))
    assert answer.status_code == 302
    assert answer.headers["Location"] == at("job", JID)


def test_each_jid_of_the_pages_leads_to_the_page_of_its_job(busy, viewer):
    hold(busy, "running")
    for page, item, jid in (
        ("job", "", "job-here"),
        ("history", "", "run-bad"),
        ("periodic", "nightly", "slot-job"),
        ("worker", "", "running"),
        ("worker", WORKER, "running"),
        ("worker", "", "j"),
        ("error", "", "job-here"),
        ("error", "0123456789ab", "job-here"),
    ):
        text = text_of(viewer.get(at(page, item)))
        links = re.findall(rf'href="({re.escape(at("job", jid))}[^"]*)"', text)
        assert links, (page, jid)
        if jid in ("job-here", "running"):
            answer = viewer.get(html.unescape(links[0]))
            assert answer.context["seen"].jid == jid


def test_the_heads_take_the_same_round_trips_however_much_there_is(busy, viewer):
    def trips(address):
        with counted() as found:
            assert viewer.get(address).status_code == 200
        return found.number

    address = at("job")
    (seen,) = (
        row.item for row in viewer.get(address).context["rows"] if row.item.jid == "job-here"
    )
    page = at("job", "job-here", f"?seen={seen.seen}")
    trips(page)
    few = [trips(address), trips(page)]
    pipe = busy.pipeline()
    for number in range(3_000):
        job = json.dumps({"class": CLASS, "jid": f"x{number}", "queue": "low", "args": [], "v": 1})
        pipe.zadd("cogworker:retry", {job: number})
        pipe.zadd("cogworker:dead", {job: number})
        pipe.lpush(f"cogworker:queue:q{number % 100}", job)
        pipe.sadd("cogworker:queues", f"q{number % 100}")
    pipe.execute()
    assert [trips(address), trips(page)] == few
    assert max(few) <= 12


# -- one job


def test_a_job_that_waits_says_why_it_does_not_run(redis_client, viewer):
    jid = JOB.set(tags=["blue"], priority=5).perform_async("a") or ""
    text = text_of(viewer.get(at("job", jid)))
    assert "Why is this job not running?" in text
    assert "No worker runs." in text
    for word in ("enqueued", "blue", ">5<", CLASS, ">default</a>", "&quot;a&quot;", "created"):
        assert word in text, word


def test_a_reason_tells_its_moment_in_the_zone_of_whoever_looks(redis_client, viewer):
    jid = JOB.perform_in(500, "a") or ""
    page = text_of(viewer.get(at("job", jid)))
    why = page[page.index("Why is this job not running?") :].partition("</ul>")[0]
    assert re.search(r"not due before .* UTC\.</strong> .*<time datetime=", why)


def test_a_job_that_failed_shows_its_attempts_and_what_comes_next(redis_client, viewer):
    add_failed(redis_client, "failing")
    answer = viewer.get(at("job", "failing"))
    text = text_of(answer)
    assert [each.text for each in answer.context["timeline"]] == [
        "created",
        "attempt 1 failed: OSError",
        "next attempt",
    ]
    assert "Traceback: &lt;frame 1&gt;" in text
    assert "&lt;b&gt;refused&lt;/b&gt; &amp; more" in text
    assert "is not tried again before" in text
    assert html.escape(at("history", query="?jid=failing")) in text
    assert at("error", "0123456789ab") in text


def test_a_dead_job_is_not_asked_why_it_does_not_run(redis_client, viewer):
    add_failed(redis_client, "died", "dead")
    text = text_of(viewer.get(at("job", "died")))
    assert "Why is this job" not in text
    assert '<span class="cog-badge cog-bad">dead</span>' in text
    assert '<span class="cog-badge cog-bad">died</span>' in text


def test_a_running_job_shows_its_worker_and_how_far_it_is(redis_client, viewer):
    hold(redis_client, "running", ago=65, track=True)
    status = {"state": "working", "class": CLASS, "queue": "low", "worker": WORKER}
    status |= {"pct": "42.5", "message": "<almost>", "own:rows": '[1, {"token": "hush"}]'}
    status |= {"updated": str(time.time()), "attempt": "1"}
    redis_client.hset("cogworker:status:running", mapping=status)
    answer = viewer.get(at("job", "running"))
    text = text_of(answer)
    assert re.search(r'<progress max="100" value="42.5"', text)
    for word in ("&lt;almost&gt;", "rows", "[1, {&quot;token&quot;: &quot;***&quot;}]", "1 min"):
        assert word in text, word
    assert at("worker", WORKER) in text
    assert "hush" not in text
    assert "Why is this job" not in text
    redis_client.delete(f"cogworker:process:{WORKER}")
    assert "silent" in text_of(viewer.get(at("job", "running")))


def test_a_job_that_is_over_is_known_by_its_status(redis_client, viewer):
    status = {"state": "complete", "class": CLASS, "queue": "low", "keeps": "1"}
    status |= {"updated": "1700000000", "attempt": "2", "result": '{"a": [1, 2], "password": "x1"}'}
    redis_client.hset("cogworker:status:over", mapping=status)
    answer = viewer.get(at("job", "over"))
    assert answer.status_code == 200
    text = text_of(answer)
    assert "succeeded" in text
    assert "{&quot;a&quot;: [1, 2], &quot;password&quot;: &quot;***&quot;}" in text
    assert "last word of its status: succeeded" in text
    assert 'class="cog-form"' not in text


def test_a_job_that_is_over_is_known_by_its_history(busy, viewer):
    good, bad = viewer.get(at("job", "run-good")), viewer.get(at("job", "run-bad"))
    assert (good.status_code, bad.status_code) == (200, 200)
    assert "succeeded" in text_of(good)
    assert [each.text for each in good.context["timeline"]] == [
        "attempt 1 began",
        "attempt 1 succeeded",
    ]
    assert "&lt;i&gt;x&lt;/i&gt;" in text_of(bad)


def test_a_job_of_which_nothing_is_known(redis_client, viewer):
    add_failed(redis_client, "another")
    answer = viewer.get(at("job", "nobody"))
    assert answer.status_code == 404
    text = text_of(answer)
    assert "This job is not known" in text
    assert "1 job was looked at" in text
    assert "cog-tabs" in text
    assert "data-cog-poll" not in text
    assert viewer.get(at("job", "nobody", "?_live=1")).status_code == 200


def test_a_job_that_was_not_found_in_time_is_looked_for_further(redis_client, viewer, monkeypatch):
    monkeypatch.setattr(job_detail, "BUDGET", 0)
    for number in range(250):
        add_failed(redis_client, f"x{number}")
    redis_client.zadd("cogworker:dead", {b'{"class":"a.B","jid":"lost","args":[],"queue":"q"}': 1})
    address, steps = at("job", "lost"), 0
    while True:
        answer = viewer.get(address)
        if answer.context["known"]:
            break
        assert answer.status_code == 404
        assert "there are more" in text_of(answer)
        address = at("job", "lost", answer.context["look_on"])
        assert html.escape(answer.context["look_on"]) in text_of(answer)
        steps += 1
    assert answer.context["seen"].place == "dead"
    assert steps >= 2
    odd = viewer.get(at("job", "x0", "?cursor=nonsense&seen=nonsense"))
    assert odd.context["seen"].jid == "x0"


def test_a_tracked_job_out_of_sight_is_still_known(redis_client, viewer):
    """Its status says that it waits, but where it should be it is not."""
    redis_client.hset(
        "cogworker:status:ghost", mapping={"state": "queued", "class": CLASS, "queue": "low"}
    )
    answer = viewer.get(at("job", "ghost"))
    assert answer.status_code == 200
    assert "enqueued" in text_of(answer)
    assert "Why is this job not running?" in text_of(answer)


def test_what_is_no_job_can_be_looked_at_and_deleted(redis_client, admin):
    redis_client.zadd("cogworker:dead", {b"{<broken>": 5})
    (row,) = admin.get(at("job")).context["rows"]
    answer = admin.get(at("job", row.item.jid))
    text = text_of(answer)
    assert "{&lt;broken&gt;" in text
    assert re.findall(r'name="action" value="(\w+)"', text) == ["delete"]


def test_sensitive_arguments_are_masked(redis_client, viewer):
    job = {"class": "shop.Pay", "jid": "pay", "queue": "q", "args": [{"token": "t0p"}], "v": 1}
    job["kwargs"] = {"password": "hush", "name": "x"}
    redis_client.zadd("cogworker:dead", {json.dumps(job): 5})
    for address in (at("job"), at("job", "pay")):
        text = text_of(viewer.get(address))
        assert "***" in text
        assert "hush" not in text
        assert "t0p" not in text


def test_tracebacks_are_folded_and_all_of_them_can_be_reached(redis_client, viewer):
    site = "/venv/lib/python3.13/site-packages"
    text = "Traceback (most recent call last):\n"
    for path in (
        f"{site}/django_cogworker/worker/runner.py",
        f"{site}/asgiref/sync.py",
        "/srv/x.py",
    ):
        text += f'  File "{path}", line 7, in run\n    call()\n'
    text += "OSError: no"
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    add_failed(redis_client, "tried", "dead")
    attempt = {"attempt": 2, "failed_at": time.time(), "outcome": "dead", "traceback": packed}
    attempt |= {"error_class": "OSError", "error_message": "no"}
    redis_client.rpush("cogworker:job_attempts:tried", json.dumps(attempt))
    run = {"jid": "tried", "class": CLASS, "queue": "q", "attempt": 1, "args": [], **attempt}
    redis_client.zadd("cogworker:history:failed", {json.dumps(run): 1000})
    hold(redis_client, "runs")
    now = time.time()
    wishes.answer(WORKER, now, [wishes.JobStack("runs", CLASS, "low", now, text)], 0)
    stuck = {"jid": "j", "class": CLASS, "queue": "q", "worker": WORKER, "stack": text, "at": 1}
    redis_client.zadd("cogworker:stuck:jobs", {json.dumps(stuck): 1})
    for page, item in (("job", "tried"), ("history", ""), ("worker", WORKER), ("worker", "")):
        seen = html.unescape(text_of(viewer.get(at(page, item))))
        folded, _, whole = seen.partition("With 2 more frames</summary>")
        assert '… 2 frames of django_cogworker, asgiref\n  File "/srv/x.py"' in folded, (page, item)
        assert "runner.py" not in folded
        assert text in whole


def test_long_arguments_are_broken_into_lines(redis_client, viewer):
    many = [{"name": f"customer {number}", "id": number} for number in range(5)]
    job = {"class": CLASS, "jid": "many", "queue": "q", "args": [many, 7], "v": 1}
    redis_client.zadd("cogworker:dead", {json.dumps(job): 5})
    lines = viewer.get(at("job", "many")).context["arguments"].split("\n")
    assert lines[0] == "["
    assert lines[1] == '  {"name": "customer 0", "id": 0},'
    assert lines[-2:] == ["]", "7"]


def test_odd_jids_have_pages(redis_client, viewer):
    for jid in ("a/b", "ü?&#", "<b>", "_2F", "x" * 200):
        job = {"class": CLASS, "jid": jid, "queue": "q", "args": [], "v": 1}
        redis_client.zadd("cogworker:dead", {json.dumps(job): 5})
    links = re.findall(r'href="([^"]+/job/[^"]+/change/[^"]*)"', text_of(viewer.get(at("job"))))
    assert len(links) == 5
    for each in links:
        assert viewer.get(html.unescape(each)).context["seen"] is not None


# -- groups of errors


def test_groups_of_errors_are_sorted_filtered_and_lead_to_their_jobs(busy, viewer):
    add_failed(busy, "died", "dead")
    text = text_of(viewer.get(at("error", query="?order=count")))
    for link in re.findall(r'href="([^"]+error_group=0123456789ab)"', text):
        assert len(viewer.get(html.unescape(link)).context["rows"]) == 1
    assert text.count("error_group=0123456789ab") == 2
    assert len(viewer.get(at("error", query=f"?class={CLASS}")).context["rows"]) == 1
    answer = viewer.get(at("error", query="?class=shop.Other"))
    assert "No job of this class has failed" in text_of(answer)
    assert len(viewer.get(at("error", query="?order=nonsense")).context["rows"]) == 1


def test_a_group_shows_its_last_day_by_the_hour(busy, viewer):
    hour = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime())
    answer = viewer.get(at("error", "0123456789ab"))
    assert any(hour in str(bar) for bar in answer.context["chart"].bars[-2:])
    counts = [bar.values for bar in answer.context["chart"].bars]
    assert len(counts) == 24
    assert sum(failed for _, failed in counts) == 1
    assert "shop.py:7" in text_of(answer)
