"""Mails by jobs in a real worker: a web process says `send_mail`, and the worker's backend sends."""

from __future__ import annotations

import email
import email.policy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMultiAlternatives

from django_cogworker.mail import SendEmail
from tests.process.coroutines import start
from tests.support.waiting import wait_until
from tests.support.worker import ROOT

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"
)

OURS = "django_cogworker.mail.EmailBackend"
FILES = "django.core.mail.backends.filebased.EmailBackend"


def boxed(folder: Path, number: int) -> list[Any]:
    """The mails that were written to files there."""

    def texts() -> list[bytes]:
        files = folder.glob("*.log")
        return [
            each
            for file in files
            for each in file.read_bytes().split(b"-" * 79 + b"\n")
            if each.strip()
        ]

    wait_until(lambda: len(texts()) >= number, timeout=30)
    return [email.message_from_bytes(each, policy=email.policy.default) for each in texts()]


def conf(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "EMAIL_BACKEND": OURS,
        "EMAIL_FILE_PATH": str(folder),
        "COGWORKER_EMAIL_BACKEND": FILES,
        **more,
    }


def test_a_mail_goes_out_by_the_workers_backend(start_worker, journal, board, tmp_path, settings):
    settings.EMAIL_BACKEND = OURS
    worker = start(start_worker, **conf(tmp_path))
    message = EmailMultiAlternatives("Grüße", "text", "a@example.com", ["b@example.com"])
    message.attach_alternative("<b>text</b>", "text/html")
    message.attach("x.bin", bytes(range(256)), "application/octet-stream")
    assert message.send() == 1
    (found,) = boxed(tmp_path, 1)
    assert (found["Subject"], found["To"]) == ("Grüße", "b@example.com")
    (attached,) = found.iter_attachments()
    assert attached.get_content() == bytes(range(256))
    board.wait_until_settled()
    assert (board.processed, board.failed) == (1, 0)
    assert worker.stop() == 0


def test_sendtestemail_of_another_process_arrives(
    start_worker, journal, board, tmp_path, redis_url
):
    worker = start(
        start_worker,
        **conf(tmp_path, COGWORKER_EMAIL_OPTIONS={"queue": "mail"}),
        COGWORKER_QUEUES=["mail"],
    )
    settings = json.dumps({"EMAIL_BACKEND": OURS, "COGWORKER_EMAIL_OPTIONS": {"queue": "mail"}})
    subprocess.run(
        [sys.executable, "-m", "django", "sendtestemail", "b@example.com"],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.project.settings",
            "COGWORKER_REDIS_URL": redis_url,
            "COGWORKER_TEST_SETTINGS": settings,
            "PYTHONPATH": str(ROOT),
        },
        check=True,
    )
    (found,) = boxed(tmp_path, 1)
    assert found["To"] == "b@example.com"
    board.wait_until_settled()
    assert worker.stop() == 0


def test_one_that_cannot_be_sent_is_tried_again(start_worker, journal, board, tmp_path, settings):
    """Nobody listens at that port; whoever said `fail_silently` has a mail that is tried again, too."""
    settings.EMAIL_BACKEND = OURS
    worker = start(start_worker, EMAIL_BACKEND=OURS, EMAIL_HOST="127.0.0.1", EMAIL_PORT=1)
    message = EmailMultiAlternatives("a", "b", "a@example.com", ["b@example.com"])
    assert message.send(fail_silently=True) == 1
    wait_until(board.all_retrying, timeout=30)
    (found,) = board.all_retrying()
    assert (found["class"], found["error_class"]) == (SendEmail.job_name, "ConnectionRefusedError")
    assert worker.stop() == 0
