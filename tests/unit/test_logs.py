"""Log records say which job they belong to, and a line of JSON is one, whatever is in the record."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from django_cogworker import Job
from django_cogworker.logs import JobFilter, JsonFormatter
from django_cogworker.testing import fake

logger = logging.getLogger("shop.of.the.project")


class Says(Job, queue="mail"):
    def perform(self) -> str:
        logger.warning("sending %s", "it", extra={"order": 5})
        return self.jid


class SaysAsync(Job, queue="mail"):
    async def perform(self) -> str:
        logger.warning("sending %s", "it", extra={"order": 5})
        return self.jid


class Lines(logging.Handler):
    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines(request, monkeypatch):
    """What the project's logger writes, in the form that the test asks for."""

    def begin(formatter: logging.Formatter, *filters: logging.Filter) -> list[str]:
        handler = Lines(formatter)
        for each in filters:
            handler.addFilter(each)
        logger.addHandler(handler)
        request.addfinalizer(lambda: logger.removeHandler(handler))
        monkeypatch.setattr(logger, "propagate", False)
        return handler.lines

    return begin


@pytest.mark.parametrize("job", [Says, SaysAsync])
def test_records_of_the_projects_own_loggers_have_the_fields_of_the_job(lines, job):
    found = lines(
        logging.Formatter("%(jid)s|%(job_class)s|%(queue)s|%(attempt)s|%(message)s"), JobFilter()
    )
    with fake():
        job.perform_async()
        jid = job.perform_one()
    logger.warning("outside")
    logger.warning("its own", extra={"jid": "j", "queue": "of people"})
    assert found == [
        f"{jid}|{job.job_name}|mail|1|sending it",
        "||||outside",
        "j||of people||its own",
    ]


@pytest.mark.parametrize("filters", [(), (JobFilter(),)], ids=["formatter alone", "with filter"])
def test_a_line_of_json_has_them_too(lines, filters):
    found = lines(JsonFormatter(), *filters)
    with fake():
        Says.perform_async()
        jid = Says.perform_one()
    logger.error("outside")
    inside, outside = map(json.loads, found)
    assert {name: inside[name] for name in ("jid", "job_class", "queue", "attempt")} == {
        "jid": jid,
        "job_class": Says.job_name,
        "queue": "mail",
        "attempt": 1,
    }
    assert (inside["level"], inside["logger"], inside["message"], inside["order"]) == (
        "WARNING",
        "shop.of.the.project",
        "sending it",
        5,
    )
    assert inside["time"].endswith("Z")
    assert set(outside) == {"time", "level", "logger", "message", "pid", "thread"}


class Spiteful:
    def __str__(self) -> str:
        raise ValueError("no")

    __repr__ = __str__


def loop() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        1.5,
        float("nan"),
        "a\nb\u2028c\ud800",
        b"x",
        {1: 2},
        {"a": {1}},
        Spiteful(),
        loop(),
    ],
    ids=["none", "true", "int", "float", "nan", "text", "bytes", "keys", "set", "spite", "loop"],
)
def test_whatever_is_in_a_record_it_is_one_line(lines, value):
    found = lines(JsonFormatter())
    logger.error("said %s\nand more", "x", extra={"given": value, "level": value, "time_": value})
    (line,) = found
    assert "\n" not in line
    assert line.isascii()
    entry = json.loads(line)
    assert entry["message"] == "said x\nand more"
    assert entry["level"] == "ERROR"
    assert "given" in entry


def test_an_exception_and_a_stack_are_inside(lines):
    found = lines(JsonFormatter())
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError:
        logger.exception("oh", stack_info=True)
    entry = json.loads(found[0])
    assert entry["exception"].endswith("ZeroDivisionError: division by zero")
    assert "test_logs.py" in entry["stack"]


def test_arguments_that_do_not_fit_the_text_are_shown_beside_it(lines, capsys):
    found = lines(JsonFormatter())
    logger.error("%d jobs", "many")
    logger.error("%s", Spiteful())
    first, second = map(json.loads, found)
    assert first["message"] == "%d jobs ('many',)"
    assert second["message"].startswith("%s <tuple>")
    assert capsys.readouterr().err == ""
