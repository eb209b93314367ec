"""The test project, a small shop, does its whole day's work with a real worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.needs import need_module
from tests.support.worker import ROOT, WorkerProcess

PROJECT = ROOT / "testproject"


class Shop:
    """The project's command line, with a directory and a Redis of the test's own."""

    def __init__(self, var: Path, redis_url: str) -> None:
        self.var = var
        self.env = {
            **os.environ,
            "SHOP_VAR": str(var),
            "COGWORKER_REDIS": redis_url,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "PYTHONPATH": str(ROOT),
        }

    def manage(self, *args: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *args],
            cwd=PROJECT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,  # longer than `demo_report` waits
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def has_tasks() -> bool:
    """Whether the app `loyalty` is in; not in the project without features, where its settings leave it out."""
    here = any(find_spec(each) for each in ("django.tasks", "django_tasks"))
    return here and (PROJECT / "loyalty").exists()


@pytest.fixture
def shop(tmp_path: Path, redis_url: str) -> Shop:
    need_module("PIL")
    shop = Shop(tmp_path / "var", redis_url)
    shop.manage("migrate", "--verbosity", "0")
    shop.manage("prepare_demo", "--password", "secret")
    return shop


@pytest.mark.smoke
@pytest.mark.timeout(120)
def test_the_demo_jobs_do_what_they_should(
    shop: Shop, start_worker: Callable[..., WorkerProcess]
) -> None:
    shop.manage("enqueue_demo")
    worker = start_worker(settings="config.settings", cwd=PROJECT, env=shop.env)
    report = shop.manage("demo_report", "--wait", "60")
    assert worker.stop() == 0
    # One more where Django's API for tasks is there.
    total = 65 + has_tasks()
    assert f"All {total} jobs did what they should" in report
    rows = {line.split()[0]: line.split()[1:] for line in report.splitlines() if "." in line}
    if has_tasks():
        assert rows["loyalty.tasks.count_points"] == ["1", "1", "0", "0", "1", "0"]
    # class: jobs, runs, failures, retries, finished, dead. Of 12 consecutive orders 4 need no
    # further try, 4 need one, 4 need two.
    assert rows["partners.jobs.AnnounceParcel"] == ["12", "24", "12", "12", "12", "0"]
    assert rows["partners.jobs.ChargeCard"] == ["1", "2", "2", "1", "0", "1"]
    assert rows["catalog.jobs.MakeThumbnail"] == ["24", "24", "0", "0", "24", "0"]
    assert len(list((shop.var / "media" / "thumbnails").iterdir())) == 24
    # Two mails may share a file, so count the mails.
    mails = "".join(path.read_text() for path in (shop.var / "mail").iterdir())
    assert mails.count("Subject: Your order") == 13


def test_the_page_shows_orders_and_takes_one(shop: Shop) -> None:
    shop.manage("enqueue_demo")
    shop.manage(
        "shell",
        "-c",
        """
from django.test import Client
client = Client()
page = client.get("/").content.decode()
assert "customer5@example.com" in page and "orders.jobs.SendReceipt" in page, page
page = client.post("/order/", follow=True).content.decode()
assert "is placed; its jobs run now" in page and "you@example.com" in page, page
assert client.login(username="admin", password="secret")
for model in ("orders/order", "catalog/product", "catalog/import", "runs/jobrun"):
    assert client.get(f"/admin/{model}/").status_code == 200, model
""",
    )


def test_migrations_are_complete(tmp_path: Path, redis_url: str) -> None:
    shop = Shop(tmp_path / "var", redis_url)
    assert "No changes" in shop.manage("makemigrations", "--check", "--dry-run")
