"""The settings: what may stand there, what is said where something else does, and when they are read."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.test import override_settings

from django_cogworker import conf
from django_cogworker.conf import get_config
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.parsers import HistoryKept, QueueWeight
from tests.support.worker import ROOT

#: setting → good values with what they become
GOOD: dict[str, list[tuple[Any, Any]]] = {
    "REDIS": [
        ("redis://h:6379/2", "redis://h:6379/2"),
        ("redis://h", "redis://h"),
        ("redis://h/", "redis://h/"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("rediss://user:pw@h:6380/0", "rediss://user:pw@h:6380/0"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("embedded", "embedded"),
        ({"host": "h", "port": 1, "db": 2}, {"host": "h", "port": 1, "db": 2}),
        ({"unix_socket_path": "/s"}, {"unix_socket_path": "/s"}),
        ({"url": "redis://h/1", "password": "pw"}, {"url": "redis://h/1", "password": "pw"}),
        ({"cache": "default"}, {"cache": "default"}),
    ],
    "KEY_PREFIX": [("x", "x"), ("{shop}:", "{shop}:"), ("é:", "é:")],
    "CONCURRENCY": [(1, 1), (500, 500)],
    "QUEUES": [
        (["a"], (QueueWeight("a", 1),)),
        (("a", "b", "a"), (QueueWeight("a", 2), QueueWeight("b", 1))),
        ({"a": 3, "b": 1}, (QueueWeight("a", 3), QueueWeight("b", 1))),
        (["a:b", "prio", "x" * 200], tuple(map(QueueWeight, ["a:b", "prio", "x" * 200]))),
    ],
    "QUEUE_ORDER": [("weighted", "weighted"), ("strict", "strict")],
    "FETCH": [("reliable", "reliable"), ("basic", "basic")],
    "SHUTDOWN_TIMEOUT": [(1, 1.0), (0.5, 0.5), (timedelta(minutes=2), 120.0)],
    "TIMEOUT_GRACE": [(5, 5.0), (timedelta(minutes=1), 60.0)],
    "ORPHAN_THRESHOLD": [(30, 30.0), (timedelta(minutes=1), 60.0)],
    "MAX_ORPHANINGS": [(1, 1)],
    "DEAD_MAX_JOBS": [(1, 1), (10**9, 10**9)],
    "DEAD_MAX_AGE": [(60, 60.0), (timedelta(days=1), 86_400.0)],
    "CLIENT_MIDDLEWARE": [([], ()), (["a.b", "c.d"], ("a.b", "c.d")), (("a.b",), ("a.b",))],
    "SERVER_MIDDLEWARE": [([], ()), (["a.b", "c.d"], ("a.b", "c.d"))],
    "DEATH_HANDLERS": [([], ()), (["a.b"], ("a.b",))],
    "ENQUEUE_ON_COMMIT": [(True, True), (False, False)],
    "PAYLOAD_WARN": [(1, 1)],
    "PAYLOAD_MAX": [(100, 100), (10**8, 10**8)],
    "SENSITIVE_ARGUMENTS": [([], ()), (["iban", " pin "], ("iban", "pin"))],
    "ARGUMENT_MODULES": [([], ()), (["a", "shop.types"], ("a", "shop.types"))],
    "CONTEXT": [
        ({}, {}),
        ({"a": "b.c", "language": False}, {"a": "b.c", "language": False}),
    ],
    "EMAIL_BACKEND": [("a.b.C", "a.b.C")],
    "EMAIL_OPTIONS": [({}, {}), ({"queue": "mail"}, {"queue": "mail"})],
    "UNIQUE_LOCK_TTL": [(60, 60.0), (0.5, 0.5), (timedelta(days=1), 86_400.0)],
    "EMBEDDED_DIR": [("/x", Path("/x")), (Path("/x/y"), Path("/x/y")), (None, None)],
    "EMBEDDED_BINARY": [("/bin/x", Path("/bin/x")), (None, None)],
    "STATUS_EXPIRATION": [(60, 60.0), (timedelta(hours=1), 3_600.0)],
    "HISTORY": [
        (True, HistoryKept(30, 50_000, 10_000, 400)),
        (False, None),
        ({}, HistoryKept()),
        ({"days": 7, "counter_days": 10}, HistoryKept(7, 50_000, 10_000, 10)),
        ({"runs": 100, "failures": 10**7}, HistoryKept(30, 100, 10**7, 400)),
    ],
    "PERIODIC": [({}, {}), ({"a": {"job": "b"}}, {"a": {"job": "b"}})],
    "ASYNC_QUEUES": [([], ()), (["a", "b", "a"], ("a", "b")), (("a",), ("a",))],
    "ASYNC_CONCURRENCY": [(1, 1), (10_000, 10_000)],
    "ADMIN": [(True, True), (False, False)],
    "RUNSERVER": [(True, True), (False, False)],
    "TESTING": [("fake", "fake"), ("inline", "inline"), (None, None)],
}

#: setting → bad values, and a part of what the error says is allowed
BAD: dict[str, list[tuple[Any, str]]] = {
    "REDIS": [
        ("", "begins with redis://"),
        ("localhost", "begins with redis://"),
        ("http://h", "begins with redis://"),
        ("redis:/h", "redis://"),
        ("redis://[::1", "begins with redis://"),
        ("redis://h/jobs", "number of a database"),
        (b"redis://h", "a URL"),
        (None, "a URL"),
        (6379, "a URL"),
        ([], "a URL"),
        ({}, "'host', 'url' or 'unix_socket_path'"),
        ({"port": 6379}, "'host', 'url' or 'unix_socket_path'"),
        ({"cache": "default", "db": 1}, "nothing beside it"),
        ({"cache": None}, "nothing beside it"),
        ({"url": "http://h"}, "begins with redis://"),
        ({"url": "redis://[::1"}, "begins with redis://"),
        ({"url": "redis://h/jobs"}, "number of a database"),
        ({"host": "h", "protocol": 3}, "without protocol"),
        ({"host": "h", "max_connections": 3}, "without max_connections"),
        ({"host": "h", "socket_timeout": 3}, "without socket_timeout"),
        ({"host": "h", "decode_responses": True, "retry": 1}, "without decode_responses, retry"),
    ],
    "KEY_PREFIX": [("", "a text"), ("a b", "without spaces"), ("a\n", "a text"), (None, "a text")],
    "CONCURRENCY": [(0, "at least 1"), (-1, "at least 1"), ("10", "whole"), (1.5, "whole")],
    "QUEUES": [
        ([], "at least one"),
        ({}, "at least one"),
        ("default", "a list of queue names"),
        (None, "a list of queue names"),
        ({"default"}, "a list of queue names"),
        ([1], "1 to 200 characters"),
        ([""], "1 to 200 characters"),
        (["x" * 201], "1 to 200 characters"),
        (["a b"], "no spaces"),
        (["a\x00"], "control characters"),
        (["a\u2028b"], "no spaces"),
        (["mail:priority"], "does not end in ':priority'"),
        (["mail:tokens"], "':tokens'"),
        ({"a": 0}, "whole number from 1"),
        ({"a": 1001}, "at most 1000"),
        ({"a": True}, "whole number from 1"),
        ({"a": "3"}, "whole number from 1"),
    ],
    "QUEUE_ORDER": [("random", "'weighted' or 'strict'"), (None, "'weighted'"), ([], "'weighted'")],
    "FETCH": [("fast", "'reliable' or 'basic'"), (True, "'reliable' or 'basic'")],
    "SHUTDOWN_TIMEOUT": [
        (0, "positive"),
        (-1, "positive"),
        ("25", "positive"),
        (None, "positive"),
        (True, "positive"),
        (float("nan"), "positive"),
        (float("inf"), "positive"),
        (10**400, "positive"),
        (timedelta(0), "positive"),
    ],
    "ORPHAN_THRESHOLD": [(0, "positive"), ("", "positive")],
    "TIMEOUT_GRACE": [(0, "positive"), ("30", "positive")],
    "MAX_ORPHANINGS": [(0, "at least 1"), (None, "whole")],
    "DEAD_MAX_JOBS": [(0, "at least 1"), (True, "whole")],
    "DEAD_MAX_AGE": [(0, "positive"), (timedelta(-1), "positive")],
    "CLIENT_MIDDLEWARE": [("a.b", "a list"), (None, "a list"), (["ab"], "'ab'"), ([len], "dotted")],
    "SERVER_MIDDLEWARE": [("a.b", "a list"), ([None], "dotted")],
    "DEATH_HANDLERS": [("a.b", "a list"), ({"a.b": 1}, "a list")],
    "ENQUEUE_ON_COMMIT": [(1, "True or False"), (None, "True or False"), ("on", "True or False")],
    "PAYLOAD_WARN": [(0, "at least 1"), (1e4, "whole")],
    "PAYLOAD_MAX": [(99, "at least 100"), ("1MB", "whole")],
    "SENSITIVE_ARGUMENTS": [
        ("password", "a list"),
        ([""], "a list"),
        ([" "], "not ' '"),
        ([1], "a list"),
    ],
    "ARGUMENT_MODULES": [
        ("shop.types", "a list of modules"),
        ({"a": 1}, "a list of modules"),
        ([3], "not 3"),
        (["a b"], "not 'a b'"),
        ([""], "not ''"),
    ],
    "CONTEXT": [
        (["a.b"], "a dict of name"),
        ({"": "a.b"}, "not ''"),
        ({3: "a.b"}, "not 3"),
        ({"a": "b"}, "not 'b' for 'a'"),
        ({"a": True}, "not True for 'a'"),
        ({"language": "a.b"}, "not 'a.b' for 'language'"),
    ],
    "EMAIL_BACKEND": [(None, "a dotted path"), ("smtp", "a dotted path")],
    "EMAIL_OPTIONS": [([], "a dict of options"), ({3: 4}, "a dict of options")],
    "UNIQUE_LOCK_TTL": [(0, "positive"), ("1 day", "positive")],
    "EMBEDDED_DIR": [("", "a path"), (3, "a path")],
    "EMBEDDED_BINARY": [("", "a path"), ([], "a path")],
    "STATUS_EXPIRATION": [(0, "positive"), ("1 hour", "positive")],
    "HISTORY": [
        (None, "True, False, or a mapping"),
        (1, "True, False, or a mapping"),
        ("on", "True, False, or a mapping"),
        ({"weeks": 1}, "not 'weeks'"),
        ({"days": 0}, "not 0 for 'days'"),
        ({"days": True}, "not True for 'days'"),
        ({"days": 36_501}, "at most 36500"),
        ({"runs": 1.5}, "whole numbers from 1"),
        ({"failures": 10**8}, "at most 10000000"),
    ],
    "PERIODIC": [(3, "a dict of name to entry"), ({"a": "0 3 * * *"}, "a dict of name to entry")],
    "ASYNC_QUEUES": [
        ("hooks", "a list of queue names"),
        ({"a": 1}, "a list of queue names"),
        (["a b"], "no spaces"),
        ([1], "1 to 200 characters"),
    ],
    "ASYNC_CONCURRENCY": [(0, "from 1 to 10000"), (10_001, "from 1 to 10000"), ("9", "whole")],
    "ADMIN": [(1, "True or False"), ("yes", "True or False"), (None, "True or False")],
    "RUNSERVER": [(1, "True or False"), ("no", "True or False"), (None, "True or False")],
    "TESTING": [("eager", "'fake' or 'inline'"), (False, "None"), (True, "None"), ([], "None")],
}


def cases(table: dict[str, list[tuple[Any, Any]]]) -> list[Any]:
    return [
        pytest.param(name, value, expected, id=f"{name}-{value!r:.40}")
        for name, rows in table.items()
        for value, expected in rows
    ]


@contextmanager
def without(name: str) -> Iterator[None]:
    """The project does not have this setting. (Django sends no signal for a deleted one.)"""
    with override_settings():
        delattr(settings, name)
        setting_changed.send(None, setting=name, value=None, enter=True)
        yield
    setting_changed.send(None, setting=name, value=None, enter=False)


def own_checks() -> dict[str | None, str]:
    return {each.id: str(each.msg) for each in run_checks(tags=["cogworker"])}


def test_every_setting_is_in_the_tables_below():
    names = {each.name.removeprefix("COGWORKER_") for each in conf.SETTINGS}
    assert names == set(GOOD) == set(BAD)
    assert {each.field for each in conf.SETTINGS} == {
        each.name for each in dataclasses.fields(conf.Config)
    }


def test_every_setting_has_a_check_id_of_its_own():
    ids = [each.check_id for each in conf.SETTINGS]
    assert len(set(ids)) == len(ids)
    assert all(each.startswith("E0") for each in ids)


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "value", "becomes"), cases(GOOD))
def test_a_good_value_is_read_and_followed_through_override_settings(name, value, becomes):
    field = name.lower()
    before = getattr(get_config(), field)
    with override_settings(**{f"COGWORKER_{name}": value}):
        assert getattr(get_config(), field) == becomes
        check_id = next(each.check_id for each in conf.SETTINGS if each.field == field)
        assert f"django_cogworker.{check_id}" not in own_checks()
    assert getattr(get_config(), field) == before


@pytest.mark.parametrize(("name", "value", "allowed"), cases(BAD))
def test_a_bad_value_is_a_check_error_that_names_setting_value_and_what_is_allowed(
    name, value, allowed
):
    """O232: invalid thresholds and intervals, and every other setting likewise."""
    check_id = next(each.check_id for each in conf.SETTINGS if each.field == name.lower())
    with override_settings(**{f"COGWORKER_{name}": value}):
        found = own_checks()
        assert set(found) == {f"django_cogworker.{check_id}"}
        message = found[f"django_cogworker.{check_id}"]
        assert message.startswith(f"COGWORKER_{name} is {value!r}; allowed is ")
        assert allowed in message
        with pytest.raises(ConfigurationError, match=f"COGWORKER_{name} is "):
            get_config()


@pytest.mark.parametrize(
    "value",
    [
        "http://user:s3cret@h:1/0",
        "redis//:s3cret@h",
        "redis://:s3cr@s3cret@h/jobs",
        "redis://[s3cret@h",
        ":s3cret@h:6379",
        "http://h?password=s3cret&db=1",
        {"password": "s3cret"},
        {"ssl_password": "s3cret", "protocol": 2, "host": "h"},
        {"url": "http://:s3cret@h"},
        {"url": "redis://:s3cret@h/jobs"},
        # Well-formed so far, but they cannot be resolved: a slash of a password ends the host.
        "redis://:s3cret/@h:6379/0",
        {"url": "redis://:s3cret/@h:6379/0"},
        {"host": "h", "password": "s3cret", "prt": 1},
    ],
    ids=repr,
)
def test_no_error_shows_a_password(value):
    with override_settings(COGWORKER_REDIS=value):
        found = own_checks()
        assert set(found) <= {"django_cogworker.E001", "django_cogworker.E104"}
        assert found
        assert "s3cret" not in str(found)


def test_an_error_still_shows_where_the_url_leads():
    with override_settings(COGWORKER_REDIS="http://user:s3cret@example.com:1/0"):
        assert "'http://***@example.com:1/0'" in own_checks()["django_cogworker.E001"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "redis://localhost:6379/0"),
        ({"REDIS_URL": "redis://b"}, "redis://b"),
        ({"REDIS_URL": "redis://b", "COGWORKER_REDIS_URL": "redis://a"}, "redis://a"),
        ({"REDIS_URL": "redis://b", "COGWORKER_REDIS_URL": ""}, "redis://b"),
    ],
)
def test_the_default_redis_comes_from_the_environment(variables, expected, monkeypatch):
    for name in ("REDIS_URL", "COGWORKER_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with without("COGWORKER_REDIS"):
        assert get_config().redis == expected


def test_the_other_defaults():
    config = get_config()
    assert config.key_prefix == "cogworker:"
    assert config.concurrency == 10
    assert config.queues == (QueueWeight("default", 1),)
    assert (config.queue_order, config.fetch) == ("weighted", "reliable")
    assert (config.shutdown_timeout, config.orphan_threshold) == (25, 60)
    assert (config.max_orphanings, config.dead_max_jobs) == (3, 10_000)
    assert config.dead_max_age == 180 * 86_400
    assert config.enqueue_on_commit is True
    assert (config.payload_warn, config.payload_max) == (10_000, 1_000_000)
    assert config.sensitive_arguments == ("password", "secret", "token")
    assert config.testing is None


def test_the_embedded_directory_lies_in_base_dir(settings):
    settings.BASE_DIR = "/srv/shop"
    assert get_config().embedded_dir == Path("/srv/shop/.cogworker")
    settings.BASE_DIR = Path("/srv/other")
    assert get_config().embedded_dir == Path("/srv/other/.cogworker")


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        get_config().concurrency = 3  # type: ignore[misc]


def test_the_first_wrong_setting_does_not_hide_the_others():
    with override_settings(COGWORKER_CONCURRENCY=0, COGWORKER_FETCH="x", COGWORKER_TESTING="y"):
        assert {"django_cogworker.E003", "django_cogworker.E006", "django_cogworker.E021"} == set(
            own_checks()
        )


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_importing_the_package_and_declaring_jobs_reads_no_setting():
    done = run_python(
        "from django_cogworker import Job, job\n"
        "import django_cogworker.client, django_cogworker.testing, django_cogworker.signals\n"
        "class A(Job, queue='x', retry=3):\n"
        "    def perform(self): ...\n"
        "@job(priority=3)\n"
        "def f(): ...\n"
        "from django.conf import settings\n"
        "assert not settings.configured\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_wrong_setting_does_not_hinder_the_start_so_that_the_check_can_report_it():
    done = run_python(
        "from django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['django_cogworker'], COGWORKER_CONCURRENCY='x')\n"
        "import django; django.setup()\n"
        "from django.core.management import call_command\n"
        "call_command('check')\n"
    )
    assert done.returncode == 1
    assert "django_cogworker.E003" in done.stderr
    assert "COGWORKER_CONCURRENCY is 'x'; allowed is a whole number of at least 1." in done.stderr


def test_without_settings_django_says_what_it_always_says():
    done = run_python("from django_cogworker.conf import get_config; get_config()")
    assert ImproperlyConfigured.__name__ in done.stderr
