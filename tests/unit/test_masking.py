"""What may be shown of a job's arguments: those with sensitive names are masked, and the job gets them all the same."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from django_cogworker import Job
from django_cogworker.features.base import Run
from django_cogworker.features.history.writing import noted, noted_burial, noted_failure
from django_cogworker.jobs.masking import (
    MASK,
    hidden_texts,
    masked_text,
    visible_arguments,
    visible_payload,
)
from django_cogworker.payload.arguments import pack_args, pack_kwargs
from django_cogworker.testing import fake


class Login(Job):
    def perform(self, user: str, Password: str, /, host: str = "", *, token: str = "") -> None: ...


class Collect(Job):
    def perform(self, first: str, *secret: str, note: str = "", **token: str) -> None: ...


class Pay(Job, sensitive=["card", "Holder"]):
    def perform(self, card: str, amount: int = 0, **more: Any) -> None: ...


def shown(job: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    name = job if isinstance(job, str) else job.job_name
    payload = {"class": name, "args": pack_args(args), "kwargs": pack_kwargs(kwargs)}
    before = json.dumps(payload)
    found = visible_arguments(payload)
    assert json.dumps(payload) == before
    return found


def test_what_is_not_sensitive_is_shown_as_it_is():
    assert shown(Login, "ada", host="h") == (["ada"], {"host": "h"})
    assert shown("no.such.Job", "ada", 1, [2], x={"y": 1}) == (["ada", 1, [2]], {"x": {"y": 1}})


def test_positional_arguments_are_masked_by_the_signature():
    assert shown(Login, "ada", "swordfish", "h") == (["ada", MASK, "h"], {})


def test_names_count_whatever_the_case_and_only_as_a_whole(settings):
    settings.COGWORKER_SENSITIVE_ARGUMENTS = ["PassWord"]
    given = {"PASSWORD": "a", "password": ["b"], "passwords": "c", "password_hint": "d"}
    masked = {"PASSWORD": MASK, "password": MASK, "passwords": "c", "password_hint": "d"}
    assert shown("no.such.Job", **given)[1] == masked
    assert shown(Login, "ada", "swordfish")[0] == ["ada", MASK]


def test_keys_of_nested_dicts_are_masked_at_any_depth():
    deep = [{"a": ({"token": "t", "n": 1}, {"$": 1, "secret": "s"})}]
    args, _ = shown("no.such.Job", deep)
    assert '"t"' not in json.dumps(args)
    assert '"s"' not in json.dumps(args)
    assert args[0][0]["a"]["v"][0] == {"token": MASK, "n": 1}
    assert args[0][0]["a"]["v"][1] == {"$": "dict", "v": {"$": 1, "secret": MASK}}


def test_the_keys_of_our_own_tags_are_no_names(settings):
    settings.COGWORKER_SENSITIVE_ARGUMENTS = ["v", "$"]
    assert shown("no.such.Job", (1, 2))[0] == [{"$": "tuple", "v": [1, 2]}]


def test_arguments_without_names_of_their_own_are_masked_with_the_parameter_that_takes_them():
    args, kwargs = shown(Collect, "a", "b", "c", note="d", other="e")
    assert args == ["a", MASK, MASK]
    assert kwargs == {"note": "d", "other": MASK}


def test_a_class_has_sensitive_names_of_its_own():
    args, kwargs = shown(Pay, "4111", 5, holder="Ada", password="p", x={"CARD": 1})
    assert (args, kwargs) == ([MASK, 5], {"holder": MASK, "password": MASK, "x": {"CARD": MASK}})
    assert shown("no.such.Job", card="4111")[1] == {"card": "4111"}


def test_a_changed_setting_counts_at_once(settings):
    assert shown(Login, "ada", "p")[0] == ["ada", MASK]
    settings.COGWORKER_SENSITIVE_ARGUMENTS = ["user"]
    assert shown(Login, "ada", "p")[0] == [MASK, "p"]
    settings.COGWORKER_SENSITIVE_ARGUMENTS = []
    assert shown(Login, "ada", "p", token="t") == (["ada", "p"], {"token": "t"})


def test_what_is_nested_without_an_end_is_masked_whole():
    deep: Any = {"password": 1}
    for _ in range(100_000):
        deep = [deep]
    assert visible_arguments({"class": "no.such.Job", "args": [deep]}) == ([MASK], None)


def test_the_whole_payload_is_masked_too():
    payload = {
        "class": Login.job_name,
        "args": ["ada", "p"],
        "jid": "j",
        "token": "t",
        "x": {"secret": 1},
    }
    assert visible_payload(payload) == {
        **payload,
        "args": ["ada", MASK],
        "token": MASK,
        "x": {"secret": MASK},
    }


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ('{"args":[{"password":"p"}]}', '{"args": [{"password": "***"}]}'),
        ('{"Password":"p", broken', MASK),
        ("harmless", "harmless"),
        ('"text"', '"text"'),
    ],
)
def test_what_was_no_job_is_masked_too(raw, seen):
    wrapper = {"class": "(unparseable)", "args": [], "jid": "j", "raw_payload": raw}
    assert visible_payload(wrapper)["raw_payload"] == seen


def test_texts_about_a_job_are_shown_without_what_its_arguments_hide():
    given: dict[str, Any] = {"class": Login.job_name, "args": ["adalove", "swordfish"]}
    given["kwargs"] = {"host": "example", "token": {"a": ["hunter22", 7], "b": "cat"}}
    given["error_message"] = "adalove, swordfish: hunter22 at example, no cat, 7"
    seen = "adalove, ***: *** at example, no cat, 7"
    assert masked_text(given["error_message"], given) == seen
    assert visible_payload(given)["error_message"] == seen
    # The longest first, so that no part of one is left over.
    given["args"][1] = "hunter22hunter22"
    assert hidden_texts(given) == ["hunter22hunter22", "hunter22"]
    assert masked_text("x hunter22hunter22", given) == "x ***"


def test_of_tagged_values_the_value_is_looked_for_and_not_the_tag():
    (packed,) = pack_args([{"token": datetime.date(2026, 11, 30)}])
    assert masked_text("date 2026-11-30", {"class": "x", "args": [packed]}) == "date ***"


def test_what_is_nested_too_deep_is_hidden_with_all_that_is_in_it():
    deep: Any = "swordfish"
    for _ in range(3_000):
        deep = [deep]
    payload = {"class": "x", "args": [deep], "kwargs": {"a": "hunter22"}}
    assert masked_text("swordfish hunter22", payload) == "*** ***"


def test_secrets_do_not_come_into_the_history():
    payload: dict[str, Any] = {"class": Login.job_name, "queue": "q", "jid": "j"}
    payload["args"] = ["ada", "swordfish"]
    payload["kwargs"] = {"token": "swordfish", "host": "h"}
    good = noted(Run(payload, "finished", 1_700_000_000.0, 0.1))
    bad = noted_failure(Run(payload, "dead", 1_700_000_000.0, 0.1, error=ValueError("x")))
    for record in (good.record, bad.record, noted_burial(payload).record):
        assert "swordfish" not in record
        assert json.loads(record)["args"] == ["ada", MASK]
        assert json.loads(record)["kwargs"] == {"token": MASK, "host": "h"}


def test_cut_arguments_are_masked_before_they_are_cut():
    payload: dict[str, Any] = {"class": Login.job_name, "queue": "q", "jid": "j"}
    payload["args"] = ["x" * 9, "swordfish"]
    payload["kwargs"] = {"host": "h" * 5_000}
    record = json.loads(noted(Run(payload, "finished", 1_700_000_000.0, 0.1)).record)
    assert record["args_cut"].startswith('["xxxxxxxxx","***"] ')


def test_the_job_itself_gets_its_arguments():
    with fake() as jobs:
        Login.perform_async("ada", "swordfish", token="t")
        (payload,) = jobs.jobs()
    assert (payload["args"], payload["kwargs"]) == (["ada", "swordfish"], {"token": "t"})
    assert "sensitive" not in payload
