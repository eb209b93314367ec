"""What is masked does not outlive its job in errors: workers take it out of what they write of failures."""

from __future__ import annotations

import json
from typing import Any

from django_cogworker import Job
from django_cogworker.api import History, attempts, error_groups, explain, status
from django_cogworker.exceptions import JobFailedError
from django_cogworker.features.base import Run
from django_cogworker.features.errors.feature import Errors
from django_cogworker.features.history.feature import HistoryFeature
from django_cogworker.features.status.feature import StatusFeature
from django_cogworker.store.store import get_store
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until

SECRET = "tops3cret"


class Charge(Job, sensitive=["card"], track=True, retry=1):
    def perform(self, card: str) -> None:
        raise ValueError(f"the bank refused {self.card_of(card)}")

    def card_of(self, card: str) -> str:
        return card


def told(jid: str) -> str:
    """All that is said of a job and its error by what outlives it, and why it does not run."""
    found: list[Any] = [*History().search(jid=jid).entries, *error_groups().groups, status(jid)]
    found += [*attempts(jid), *(each.traceback for each in History().search(jid=jid).entries)]
    return f"{found!r} {json.dumps(explain(jid).as_dict())}"


def test_a_failure_is_written_down_without_what_its_arguments_hide(redis_url, journal):
    with working():
        jid = str(Charge.perform_async(SECRET))
        wait_until(lambda: len(attempts(jid)) == 1)
    words = told(jid)
    assert SECRET not in words
    assert words.count("the bank refused ***") >= 5
    assert "Traceback" in words


def test_of_a_job_that_died_with_its_worker_what_stands_in_it_is_written_without_them(redis_url):
    message = f"the bank refused {SECRET}"
    payload = {
        "class": Charge.job_name,
        "jid": "buried",
        "queue": "default",
        "args": [SECRET],
        "error_class": "BankError",
        "error_message": message,
        "track": True,
    }
    died = Run(payload, "dead", error=JobFailedError(message))
    for feature in (HistoryFeature(), Errors(), StatusFeature()):
        for effects in (feature.settled(died), feature.recovered(payload, "dead")):
            assert SECRET not in repr(effects), feature
    get_store().apply(Errors().recovered(payload, "dead"))
    assert [each.message for each in error_groups().groups] == ["the bank refused ***"]
