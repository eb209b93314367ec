"""The history without Redis: buckets, records, the effects of a batch, the setting, the test modes."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from django_cogworker.conf import get_config
from django_cogworker.exceptions import ConfigurationError, InvalidQuery
from django_cogworker.features import registry
from django_cogworker.features.base import Run
from django_cogworker.features.history import buckets
from django_cogworker.features.history.feature import HistoryFeature
from django_cogworker.features.history.writing import noted, noted_failure
from django_cogworker.testing import fake, inline
from tests.project.jobs import Append, FailOnce

PAYLOAD = {"class": Append.job_name, "queue": "default", "jid": "j1", "args": ["a"]}
BEGAN = 1_700_000_000.0


def run(outcome: str = "finished", **more: Any) -> Run:
    payload = {**PAYLOAD, "enqueued_at": BEGAN - 2, **more.pop("payload", {})}
    return Run(payload, outcome, more.pop("began_at", BEGAN), 0.25, **more)


def record_of(effects: Any) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(
        next(each.args[1] for each in effects if each.op == "record")
    )
    return record


# -- buckets


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_a_percentile_of_the_buckets_is_within_nine_percent(share):
    draw = random.Random(5)
    values = sorted(0.002 * math.exp(draw.uniform(0, 13)) for _ in range(20_000))
    counts: dict[int, int] = {}
    for each in values:
        counts[buckets.bucket_of(each)] = counts.get(buckets.bucket_of(each), 0) + 1
    true = values[math.ceil(share * len(values)) - 1]
    told = buckets.percentile(counts, share)
    assert told is not None
    assert abs(told / true - 1) < 0.0906


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.0005, 0.001, 0.00100001, 1.0, 86_400, 1e9])
def test_every_duration_has_a_bucket_of_a_fixed_number(seconds):
    bucket = buckets.bucket_of(seconds)
    assert 0 <= bucket <= buckets.LAST < 110
    if 0.001 < seconds <= 86_400:
        assert abs(buckets.middle_of(bucket) / seconds - 1) < 0.1


def test_no_run_has_no_percentile():
    assert buckets.percentile({}, 0.5) is None
    assert buckets.percentile({3: 0}, 0.5) is None


# -- records


def test_n212_the_record_of_a_success_has_what_ran_and_when_and_no_error():
    record = json.loads(noted(run(payload={"kwargs": {"to": "é"}})).record)
    assert record == {
        "jid": "j1",
        "class": Append.job_name,
        "queue": "default",
        "attempt": 1,
        "seconds": 0.25,
        "wait": 2.0,
        "args": ["a"],
        "kwargs": {"to": "é"},
    }


def test_the_clock_of_another_host_makes_no_negative_wait():
    assert json.loads(noted(run(payload={"enqueued_at": BEGAN + 9})).record)["wait"] == 0


@pytest.mark.parametrize("junk", [None, "soon", True, [1]])
def test_an_unusable_time_of_enqueueing_costs_the_wait_alone(junk):
    note = noted(run(payload={"enqueued_at": junk}))
    assert "wait" not in json.loads(note.record)
    assert (note.wait_field, note.run_field is None) == (None, False)


def test_long_arguments_are_cut():
    record = json.loads(noted(run(payload={"args": ["x" * 900_000]})).record)
    assert "args" not in record
    assert record["args_cut"] == '["' + "x" * 498


def test_arguments_that_a_middleware_spoilt_cost_themselves_alone():
    record = json.loads(noted(run(payload={"args": [object()]})).record)
    assert record["args_cut"] == "(cannot be shown)"
    assert record["jid"] == "j1"


def test_an_error_is_bounded_whatever_it_is():
    def deep(level: int) -> None:
        if level:
            deep(level - 1)
        else:
            raise ValueError("y" * 1_000_000)

    try:
        deep(500)
    except ValueError as error:
        note = noted_failure(run("dead", error=error))
    record = json.loads(note.record)
    assert len(record["error_message"]) == 10_000
    assert len(note.record) < 20_000


# -- a batch


def test_the_notes_of_many_runs_share_their_effects(settings):
    """No step of its own a run: the effects grow with classes and hours, not with runs."""
    settings.COGWORKER_HISTORY = {"runs": 7, "days": 3}
    feature = HistoryFeature()
    notes = [feature.note(run(payload={"jid": f"j{number}"})) for number in range(500)]
    effects = feature.digest(notes)
    assert len(effects) == len(feature.digest(notes[:1])) == 8
    (record,) = [each for each in effects if each.key == "cogworker:history:success"][:1]
    assert len(record.args) == 1_002
    assert record.args[3] == 7
    assert float(record.args[2]) == BEGAN - 3 * 86_400
    assert feature.digest(notes) == effects, "a call that is repeated does the same again"


def test_every_key_that_is_written_gets_a_ttl():
    feature = HistoryFeature()
    successes = feature.digest([feature.note(run())])
    for effects in (successes, feature.settled(run("retrying", error=ValueError("oh")))):
        written = {each.key for each in effects}
        assert written == {each.key for each in effects if each.op == "expire"}
        assert len(written) == 4


@pytest.mark.parametrize("outcome", ["finished", "waiting", "cancelled", "expired"])
def test_what_had_no_attempt_that_failed_leaves_no_failure(outcome):
    assert HistoryFeature().settled(run(outcome)) == ()


def test_an_unknown_class_is_recorded_and_has_no_histogram():
    """Any text may stand in a payload; keys are only made for the classes of the project."""
    gone = run("dead", payload={"class": "no.such.Job"}, error=ValueError("x"), began_at=0.0)
    effects = HistoryFeature().settled(gone)
    assert {each.key.split(":")[2] for each in effects} == {"failed", "daily"}
    assert record_of(effects)["attempt"] == 1
    assert "seconds" not in record_of(effects)


def test_a_failure_that_a_dead_worker_could_not_file_is_told_by_the_payload():
    payload = {"retry_count": 2, "error_class": "shop.Broken", "error_message": "oh"}
    effects = HistoryFeature().settled(run("retrying", payload=payload, began_at=0.0))
    record = record_of(effects)
    assert (record["attempt"], record["error_class"], record["error_message"]) == (
        2,
        "shop.Broken",
        "oh",
    )


def test_a_job_buried_with_its_worker_is_a_failure_and_one_that_goes_back_is_nothing():
    payload = {**PAYLOAD, "retry_count": 1, "error_class": "E", "error_message": "died"}
    feature = HistoryFeature()
    assert record_of(feature.recovered(payload, "dead"))["outcome"] == "dead"
    assert feature.recovered(payload, "front") == feature.recovered(payload, "schedule") == ()


def test_off_means_nothing_at_all(settings):
    settings.COGWORKER_HISTORY = False
    feature = HistoryFeature()
    assert feature.note(run()) is None
    assert feature.settled(run("dead", error=ValueError("x"))) == ()
    assert feature.recovered(PAYLOAD, "dead") == ()
    assert feature.digest([]) == ()


def test_it_is_on_unless_somebody_turns_it_off():
    assert any(isinstance(each, HistoryFeature) for each in registry._loaded)
    assert get_config().history is not None


@pytest.mark.parametrize("mode", [fake, inline])
def test_the_test_modes_write_no_history(mode, journal):
    """No Redis is there in these tests; whoever asked for it would fail."""
    with mode():
        Append.perform_async("a")
        if mode is inline:
            journal.wait_for("a")
            with pytest.raises(ValueError, match="fails"):
                FailOnce.perform_async("b")
        else:
            Append.drain()


# -- questions that make no sense


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"limit": 0}, "limit is 0; it takes a whole number from 1 to 1000"),
        ({"limit": True}, "limit is True"),
        ({"offset": -1}, "offset is -1"),
        ({"status": "done"}, "'success', 'failed' or None"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_what_does(question, said):
    from django_cogworker.api import History

    with pytest.raises(InvalidQuery, match=said):
        History().page(**question)
    with pytest.raises(InvalidQuery, match="days is 0"):
        History().daily(0)


def test_wrong_bounds_are_refused_with_what_is_allowed(settings):
    settings.COGWORKER_HISTORY = {"days": 0}
    with pytest.raises(ConfigurationError, match=r"COGWORKER_HISTORY is .*whole numbers from 1"):
        get_config()
