"""Arguments: what travels comes back as it went, what would not is refused at the call with its path."""

from __future__ import annotations

import collections
import datetime as dt
import json
import math
import sys
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from django_cogworker import Job
from django_cogworker.client import push
from django_cogworker.exceptions import (
    ArgumentError,
    CogworkerError,
    InvalidPayload,
    PayloadTooLarge,
    UnknownFormat,
)
from django_cogworker.payload.arguments import MAX_DEPTH
from django_cogworker.testing import fake, inline

PARIS = ZoneInfo("Europe/Paris")


class Echo(Job):
    def perform(self, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs


def round_trip(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    with fake():
        Echo.perform_async(*args, **kwargs)
        result: tuple[tuple[Any, ...], dict[str, Any]] = Echo.perform_one()
        return result


def shape(value: Any) -> Any:
    """Value and type, all the way down: 1, True, 1.0 and Decimal(1) are equal and are not the same."""
    kind = type(value)
    if kind is dict:
        return kind, tuple((key, shape(each)) for key, each in value.items())
    if kind in (list, tuple):
        return kind, tuple(shape(each) for each in value)
    if kind in (set, frozenset):
        return kind, frozenset(shape(each) for each in value)
    if kind in (dt.datetime, dt.time):
        name = getattr(value.tzinfo, "key", None)
        return kind, value.isoformat(), value.fold, name, value.utcoffset()
    return kind, repr(value)


VALUES: dict[str, Any] = {
    "text": "héllo ☃ 😀",
    "empty text": "",
    "control characters": '\x00\x01\n\r\t\x7f\u2028"\\/</script>',
    "lone surrogates": "a\ud800b\udfff",
    "none": None,
    "true": True,
    "false": False,
    "int": 42,
    "negative": -1,
    "beyond doubles": 2**53 + 1,
    "beyond 64 bits": -(10**30),
    "4300 digits": 10**4299,
    "float": 0.1,
    "minus zero": -0.0,
    "smallest float": 5e-324,
    "largest float": sys.float_info.max,
    "whole float": 1.0,
    "list": [1, "a", None, [2.5, []]],
    "dict": {"a": 1, "": {"b": [True]}, "ü": None},
    "order of keys": {"z": 1, "a": 2, "m": 3},
    "datetime": dt.datetime(2026, 11, 30, 12, 0, 0, 123456),
    "datetime utc": dt.datetime(2026, 11, 30, tzinfo=dt.UTC),
    "datetime offset": dt.datetime(
        2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))
    ),
    "datetime odd offset": dt.datetime(
        2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=12345, microseconds=6))
    ),
    "datetime zone": dt.datetime(2026, 7, 1, 9, 30, tzinfo=PARIS),
    "datetime first 2:30": dt.datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=0),
    "datetime second 2:30": dt.datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=1),
    "datetime in the gap": dt.datetime(2026, 3, 29, 2, 30, tzinfo=PARIS),
    "naive fold": dt.datetime(2026, 10, 25, 2, 30, fold=1),
    "datetime min": dt.datetime.min,
    "datetime max": dt.datetime.max,
    "zone utc": dt.datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")),
    "date": dt.date(2026, 11, 30),
    "date min": dt.date.min,
    "time": dt.time(23, 59, 59, 999999),
    "time utc": dt.time(1, tzinfo=dt.UTC),
    "time zone": dt.time(1, tzinfo=PARIS),
    "time fold": dt.time(1, fold=1),
    "timedelta": dt.timedelta(days=3, seconds=4, microseconds=5),
    "timedelta negative": dt.timedelta(microseconds=-1),
    "timedelta extremes": [dt.timedelta.min, dt.timedelta.max],
    "decimal": Decimal("1.10"),
    "decimal exponents": [Decimal("1E+400"), Decimal("-0"), Decimal("0.000"), Decimal("1" * 60)],
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "bytes": bytes(range(256)),
    "no bytes": b"",
    "tuple": (1, "a", (2, ())),
    "set": {1, "a", (1, 2), frozenset({3})},
    "empty sets": [set(), frozenset()],
    "frozenset": frozenset({dt.date(2026, 1, 1), Decimal(1), uuid.UUID(int=1)}),
    "true is not one": [True, 1, 1.0, Decimal(1)],
    "dollar": {"$": "datetime", "v": "2026-11-30"},
    "dollar beside others": {"$": 1, "v": {"$": {"$": None}}, "x": [{"$": "dict"}]},
    "dollar with a date": {"$": dt.date(2026, 1, 1)},
    "dollar keys": {"$$": 1, "$v": 2, "v": 3},
    "all together": {
        "orders": [
            {
                "due": dt.datetime(2026, 1, 1, tzinfo=PARIS),
                "lines": ((1, Decimal("9.99")), (2, None)),
            }
        ],
        "tags": {("a", b"b"), frozenset({dt.timedelta(1)})},
    },
}


@pytest.mark.smoke
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_value_comes_back_as_its_type_positional_by_name_and_nested(value):
    """A1, Q2-11"""
    args, kwargs = round_trip(value, [value], x=value, y={"k": (value,)})
    assert shape(args) == shape((value, [value]))
    assert shape(kwargs) == shape({"x": value, "y": {"k": (value,)}})


def test_many_arguments_and_odd_names():
    """Names that Python's calls and ours use on the way; `self` is the job's own."""
    names = {"function": 1, "func": 2, "loop": 3, "args": 4, "kwargs": 5, "delay": 6, "when": 7}
    names |= {"queue": 8, "payload": 9, "on_commit": 10, "a b": 11, "": 12, "$": 13, "ü": 14}
    assert round_trip(*range(300), **names) == (tuple(range(300)), names)


def test_the_arguments_are_taken_at_the_call():
    """What the caller does with its objects afterwards does not matter."""
    data: dict[str, Any] = {"items": [1]}
    with fake():
        Echo.perform_async(data)
        data["items"].append(2)
        assert Echo.perform_one() == (({"items": [1]},), {})


def test_each_run_gets_values_of_its_own():
    with fake():
        Echo.perform_async([1])
        first = Echo.jobs[0]["args"]
        first.append("changed by a test")
        assert Echo.jobs[0]["args"] == [[1]]


@pytest.mark.parametrize("mode", [fake, inline])
def test_the_wire_is_plain_json(mode):
    """Both modes encode as production does; what is not JSON on the wire is tagged."""
    with fake():
        Echo.perform_async(dt.date(2026, 11, 30), (1,), {"$": 1}, x={2})
        (payload,) = Echo.jobs
    assert json.loads(json.dumps(payload)) == payload
    assert payload["v"] == 1
    assert payload["args"] == [
        {"$": "date", "v": "2026-11-30"},
        {"$": "tuple", "v": [1]},
        {"$": "dict", "v": {"$": 1}},
    ]
    assert payload["kwargs"] == {"x": {"$": "set", "v": [2]}}


# -- what is refused


class Point(NamedTuple):
    x: int


class Text(str):
    pass


def _cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append({"again": ring})
    return ring


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


class NoOffset(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta | None:
        return None

    dst = utcoffset

    def tzname(self, when: dt.datetime | None) -> str | None:
        return None


REFUSED: list[tuple[Any, str, str]] = [
    (object(), "", "builtins.object"),
    (Point(1), "", "Point"),
    (Text("x"), "", "Text"),
    (mark_safe("x"), "", "SafeString"),
    (gettext_lazy("x"), "", "__proxy__"),
    (collections.OrderedDict(a=1), "", "OrderedDict"),
    (collections.defaultdict(list), "", "defaultdict"),
    (collections.deque([1]), "", "deque"),
    (range(3), "", "range"),
    ((x for x in "a"), "", "generator"),
    (bytearray(b"x"), "", "bytearray"),
    (memoryview(b"x"), "", "memoryview"),
    (1j, "", "complex"),
    (Fraction(1, 3), "", "Fraction"),
    (Exception("x"), "", "Exception"),
    (int, "", "type"),
    (print, "", "builtin_function_or_method"),
    (PARIS, "", "ZoneInfo"),
    (float("nan"), "", "nan"),
    (float("inf"), "", "inf"),
    (-math.inf, "", "-inf"),
    ({1: 2}, "", "key 1 of type int"),
    ({None: 2}, "", "NoneType"),
    ({Text("x"): 2}, "", "Text"),
    (10**5000, "", "digits"),
    ([1, {"due": 1j}], "[1]['due']", "complex"),
    ({"a": [{"b": (1, {2j})}]}, "['a'][0]['b'][1]{…}", "complex"),
    ({"a": {"b": [float("nan")]}}, "['a']['b'][0]", "nan"),
    ([{"x": {3: 4}}], "[0]['x']", "key 3"),
    ([1, [10**5000]], "[1][0]", "digits"),
    (dt.datetime(2026, 1, 1, tzinfo=NoOffset()), "", "offset"),
    (_cycle(), "", "holds itself"),
    (_deep(MAX_DEPTH + 1), "", "deeper than 50"),
]


@pytest.mark.parametrize(
    ("value", "path", "names"),
    REFUSED,
    ids=[f"{at}-{type(each[0]).__name__}" for at, each in enumerate(REFUSED)],
)
def test_what_would_not_come_back_is_a_type_error_with_its_path_and_type(value, path, names):
    """AR-10"""
    with fake():
        with pytest.raises(TypeError) as caught:
            Echo.perform_async("fine", value)
        assert str(caught.value).startswith(f"args[1]{path}")
        assert names in str(caught.value)
        with pytest.raises(ArgumentError) as caught:
            Echo.perform_async(due=value)
        assert str(caught.value).startswith(f"kwargs['due']{path}")
        which = (
            "digits" if names == "digits" else "item 1: "
        )  # those are found out when it is encoded
        with pytest.raises(ArgumentError, match=which):
            Echo.perform_bulk([(1,), (value,)])
        with pytest.raises(ArgumentError):
            push({"class": "x", "args": [value]})
        assert Echo.jobs == []


def test_as_deep_as_allowed_travels():
    value = _deep(MAX_DEPTH)
    assert round_trip(value) == ((value,), {})
    nested: Any = 1
    for _ in range(MAX_DEPTH - 1):
        nested = {"$": (nested,)} if not isinstance(nested, dict) else {"$": nested}
    args, _ = round_trip(nested)
    assert shape(args[0]) == shape(nested)


def test_the_same_object_twice_is_no_cycle():
    same = [1]
    assert round_trip([same, same], same) == (([[1], [1]], [1]), {})


def test_a_refusal_is_one_of_our_errors():
    with pytest.raises(CogworkerError):
        Echo.perform_async(1j)


# -- size


@pytest.mark.parametrize(
    "enqueue",
    [
        lambda: Echo.perform_async("x" * 1000),
        lambda: Echo.perform_in(5, "x" * 1000),
        lambda: Echo.perform_bulk([("x" * 1000,)]),
        lambda: push({"class": "x", "args": ["x" * 1000]}),
    ],
    ids=["async", "in", "bulk", "push"],
)
def test_a_payload_beyond_the_maximum_is_refused_with_its_size(enqueue, settings):
    settings.COGWORKER_PAYLOAD_MAX = 1000
    with fake() as transport:
        with pytest.raises(PayloadTooLarge, match=r"payload of 1\d\d\d bytes.*1000") as caught:
            enqueue()
        assert transport.jobs() == []
    assert isinstance(caught.value, ValueError)


def test_a_large_payload_is_a_warning_that_names_the_class(settings, caplog):
    settings.COGWORKER_PAYLOAD_WARN = 500
    with fake():
        Echo.perform_async("x" * 100)
        assert caplog.records == []
        Echo.perform_async("x" * 500)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"{__name__}.Echo" in record.getMessage()


def test_the_default_maximum_is_a_megabyte():
    with fake():
        Echo.perform_async("x" * 990_000)
        with pytest.raises(PayloadTooLarge):
            Echo.perform_async("x" * 1_000_000)


# -- what a newer version wrote


def test_a_tag_of_a_later_version_is_not_taken_for_data():
    from django_cogworker.payload.arguments import unpack

    for tag in ("Money", 3, None, ["list"], {"$": 1}):
        with pytest.raises(UnknownFormat):
            unpack([{"$": tag, "v": 1}])


def test_an_argument_error_of_the_codec_is_both_kinds():
    """The low-level client promises `InvalidPayload`, a call of a job class `ArgumentError`."""
    with pytest.raises(InvalidPayload) as caught:
        Echo.perform_async(10**5000)
    assert isinstance(caught.value, ArgumentError)
