"""People who look at the pages, and something for them to see.

`admin` may do everything; `viewer` may look; `passer` is staff without any permission of ours; `stranger` is not
logged in. `holder("pause_queues")` has `view_jobs` and the permissions named.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from django_cogworker.admin.pages import job_actions, job_detail, jobs
from django_cogworker.features.errors.feature import groups_key
from django_cogworker.store.store import get_store
from tests.project.jobs import Append, AppendLater

CLASS = "tests.project.jobs.Append"
WORKER = "host1:4242:0123456789ab"
ENTRIES = {
    "nightly": {"job": CLASS, "cron": "0 3 * * *", "args": ["a"]},
    "hourly": {"job": CLASS, "cron": "0 * * * *", "tz": "Europe/Paris", "args": ["b"]},
}
#: Every page by its address, and what its page of one thing shows.
LISTS = [
    "overview",
    "job",
    "queue",
    "scheduled",
    "retry",
    "dead",
    "periodic",
    "worker",
    "history",
    "error",
    "jobclass",
]
ITEMS = {
    "job": "job-here",
    "queue": "default",
    "periodic": "nightly",
    "worker": WORKER,
    "error": "0123456789ab",
    "jobclass": CLASS,
}


def at(page: str, item: str = "", query: str = "") -> str:
    from django.contrib.admin.utils import quote
    from django.urls import reverse

    if item:
        return reverse(f"admin:django_cogworker_{page}_change", args=[quote(item)]) + query
    return reverse(f"admin:django_cogworker_{page}_changelist") + query


ADDRESSES = [(each, "") for each in LISTS] + list(ITEMS.items())


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """On a loaded machine no search of a page ends too early; tests of that give it no time at all."""
    for module in (jobs, job_detail, job_actions):
        monkeypatch.setattr(module, "BUDGET", 10)
    monkeypatch.setattr(job_detail, "RUNS_BUDGET", 10)


@pytest.fixture
def holder(db) -> Callable[..., Client]:
    def make(*permissions: str, look: bool = True, **options) -> Client:
        user = User.objects.create_user(f"user{User.objects.count()}", is_staff=True)
        names = [*permissions, *(["view_jobs"] if look else [])]
        found = Permission.objects.filter(
            content_type__app_label="django_cogworker", codename__in=names
        )
        assert len(found) == len(names)
        user.user_permissions.set(found)
        client = Client(**options)
        client.force_login(user)
        return client

    return make


@pytest.fixture
def viewer(holder) -> Client:
    return holder()


@pytest.fixture
def passer(holder) -> Client:
    return holder(look=False)


@pytest.fixture
def admin(db) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def periodic(settings):
    settings.COGWORKER_PERIODIC = ENTRIES


@pytest.fixture
def busy(redis_client, periodic):
    """A day's work: jobs on two queues, a worker that runs one, runs in the history, an entry with a slot."""
    now = time.time()
    Append.set(on_commit=False).perform_async("a")
    AppendLater.set(on_commit=False).perform_async("b")
    for kind, jid, more in (
        ("success", "run-good", {}),
        (
            "failed",
            "run-bad",
            {
                "outcome": "retrying",
                "error_class": "OSError",
                "error_message": "<b>refused</b> & more",
            },
        ),
    ):
        record = {"jid": jid, "class": CLASS, "queue": "default", "attempt": 1, "seconds": 1.25}
        record |= {"wait": 0.01, "args": ["<i>x</i>"], **more}
        redis_client.zadd(
            f"cogworker:history:{kind}", {json.dumps(record, separators=(",", ":")): now - 10}
        )
    hour, day = int(now // 3600), time.strftime("%Y-%m-%d", time.gmtime(now))
    redis_client.hset(f"cogworker:throughput:{hour}", mapping={"processed": 5, "failed": 2})
    redis_client.hset(f"cogworker:history:daily:{day}", mapping={"success": 5, "failed": 2})
    redis_client.hset(
        f"cogworker:history:times:{CLASS}:{hour}",
        mapping={"success": 5, "failed": 2, "r41": 7, "w3": 7},
    )
    redis_client.zadd("cogworker:history:classes", {CLASS: now})
    line = {"slot": int(now) - 60, "at": now - 59, "jid": "slot-job"}
    redis_client.rpush("cogworker:periodic:ledger:nightly", json.dumps(line))
    for name in ("schedule", "retry", "dead"):
        job = {
            "class": CLASS,
            "jid": f"in-{name}",
            "queue": "default",
            "args": ["<i>x</i>"],
            "v": 1,
        }
        job |= {"created_at": now - 50, "tags": ["red"]}
        if name != "schedule":
            job |= {"failed_at": now - 40, "retry_count": 2, "retry": 4}
            job |= {"error_class": "OSError", "error_message": "<b>refused</b> & more"}
        at = now - 10 if name == "dead" else now + 600
        redis_client.zadd(f"cogworker:{name}", {json.dumps(job, separators=(",", ":")): at})
    add_failed(redis_client, "job-here")
    status = {"state": "retrying", "class": CLASS, "queue": "default", "due": str(now + 600)}
    redis_client.hset("cogworker:status:job-here", mapping=status)
    add_worker(redis_client, WORKER)
    loss = {"pid": 7, "identity": "host1:7:x", "how": "signal 9", "at": now, "lived": 60}
    redis_client.zadd("cogworker:losses", {json.dumps(loss): now})
    stuck = {"jid": "j", "class": CLASS, "queue": "default", "worker": WORKER, "stack": "<frame>"}
    redis_client.zadd("cogworker:stuck:jobs", {json.dumps({**stuck, "at": now}): now})
    return redis_client


def add_failed(client, jid: str, place: str = "retry", **more) -> None:
    """A job that failed once, in a set, with the log of that attempt and its group of errors."""
    now = time.time()
    job = {"class": CLASS, "jid": jid, "queue": "default", "args": ["<i>x</i>"], "v": 1}
    job |= {"created_at": now - 90, "failed_at": now - 60, "retry_count": 1, "tags": ["red"]}
    job |= {"error_class": "OSError", "error_message": "<b>refused</b> & more"}
    job |= {"error_group": ITEMS["error"], **more}
    at = now - 50 if place == "dead" else now + 600
    client.zadd(f"cogworker:{place}", {json.dumps(job, separators=(",", ":")): at})
    attempt = {"attempt": 1, "failed_at": now - 60, "outcome": "retrying"}
    attempt |= {"error_class": "OSError", "error_message": "<b>refused</b> & more"}
    packed = base64.b64encode(zlib.compress(b"Traceback: <frame 1>")).decode()
    client.rpush(f"cogworker:job_attempts:{jid}", json.dumps({**attempt, "traceback": packed}))
    told = {"class": CLASS, "error": "OSError", "where": "shop.fetch", "line": "shop.py:7"}
    told |= {"message": "<b>refused</b> & more", "jid": jid}
    row = f"{now - 60:.3f} 1 {now - 60:.3f} {int(now // 3600)}:1\n{json.dumps(told)}"
    client.hset(groups_key(get_store().keys), ITEMS["error"], row)


def add_worker(client, identity: str, *, quiet: bool = False) -> None:
    """A worker as its beat writes it, without one."""
    now = time.time()
    info = {"hostname": "host1", "pid": 4242, "concurrency": 10, "queues": ["default", "default"]}
    info |= {"started_at": now - 100, "version": "1", "python": "3.13", "gil": True, "rss_kb": 5000}
    info |= {"django": "5.2.8", "redis_py": "7.1.0"}
    client.sadd("cogworker:processes", identity)
    client.hset(
        f"cogworker:process:{identity}",
        mapping={
            "info": json.dumps(info),
            "busy": 1,
            "quiet": "true" if quiet else "false",
            "beat": now - 2,
        },
    )
