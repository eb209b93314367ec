"""The system checks about more than one setting, or about what a setting names."""

from __future__ import annotations

import sys
import types
from typing import Any
from unittest import mock

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connections
from django.test import override_settings

REDIS_CACHE = "django_redis.cache.RedisCache"
DJANGO_REDIS_CACHE = "django.core.cache.backends.redis.RedisCache"


def found(check_id: str) -> list[CheckMessage]:
    every = run_checks(tags=["cogworker"])
    return [each for each in every if each.id == f"django_cogworker.{check_id}"]


def all_ids() -> list[str | None]:
    return [each.id for each in run_checks(tags=["cogworker"])]


@pytest.mark.smoke
def test_the_tests_own_settings_are_in_order():
    assert all_ids() == []


class TestUnknownSettings:
    """W001"""

    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("COGWORKER_CONCURENCY", "COGWORKER_CONCURRENCY"),
            ("COGWORKER_REDIS_URL", "COGWORKER_REDIS"),
            ("COGWORKER_QUEUE", "COGWORKER_QUEUES"),
        ],
    )
    def test_a_misspelt_setting_is_a_warning_with_the_nearest_name(self, name, nearest):
        with override_settings(**{name: 1}):
            (warning,) = found("W001")
        assert name in warning.msg
        assert warning.hint == f"Did you mean {nearest}?"

    def test_one_that_is_like_none_has_no_hint(self):
        with override_settings(COGWORKER_XYZZY=1):
            (warning,) = found("W001")
        assert warning.hint is None

    @pytest.mark.parametrize("name", ["COGWORKER", "MY_COGWORKER_QUEUE", "COGWORKER_PERIODIC"])
    def test_names_that_are_not_ours_or_come_later_are_let_be(self, name):
        with override_settings(**{name: {}}):
            assert found("W001") == []


class TestSharedCache:
    """W002: `cache.clear()` on the jobs' database deletes every job."""

    @pytest.mark.parametrize("backend", [REDIS_CACHE, DJANGO_REDIS_CACHE])
    @pytest.mark.parametrize(
        ("jobs", "location", "warns"),
        [
            ("redis://h:6379/0", "redis://h:6379/0", True),
            ("redis://h", "redis://h:6379/0", True),
            ("redis://h:6379/0", "redis://:pw@h:6379", True),
            ("redis://h:6379/0", "rediss://h:6379/0", True),
            ("redis://h:6379/0", "redis://h:6379/1", False),
            ("redis://h:6379/1", "redis://h:6379?db=1", True),
            ("redis://h:6379/0", "redis://other:6379/0", False),
            ("redis://h:6379/0", "redis://h:6380/0", False),
            ("redis://localhost:6379/0", "redis://127.0.0.1:6379/0", True),
            ("unix:///s", "unix:///s?db=0", True),
            ("unix:///s", "unix:///s?db=2", False),
            ({"host": "h", "db": 3}, "redis://h/3", True),
            ({"host": "h", "db": "3"}, "redis://h/3", True),
            ({"unix_socket_path": "/s"}, "unix:///s", True),
            ("redis://h:6379/0", ["redis://g:6379/0", "redis://h:6379/0"], True),
            ("redis://h:6379/0", "redis://g:6379/0, redis://h:6379/0", True),
            ("redis://h:6379/0", "nonsense", False),
        ],
    )
    def test_a_cache_in_the_same_database_is_a_warning(self, backend, jobs, location, warns):
        caches = {"default": {"BACKEND": backend, "LOCATION": location}}
        with override_settings(COGWORKER_REDIS=jobs, CACHES=caches):
            warnings = found("W002")
        assert len(warnings) == warns
        if warns:
            assert "'default'" in warnings[0].msg
            assert "pw" not in warnings[0].msg

    def test_caches_elsewhere_are_let_be(self):
        locmem = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "x"}
        with override_settings(CACHES={"default": locmem, "none": {"BACKEND": REDIS_CACHE}}):
            assert found("W002") == []

    def test_a_job_store_named_by_cache_alias_is_shared_by_nature(self):
        caches = {"default": {"BACKEND": REDIS_CACHE, "LOCATION": "redis://h:6379/5"}}
        with override_settings(COGWORKER_REDIS={"cache": "default"}, CACHES=caches):
            (warning,) = found("W002")
        assert "redis://h:6379/5" in warning.msg


class TestEmbedded:
    """W003"""

    @pytest.mark.parametrize(("debug", "count"), [(True, 0), (False, 1)])
    def test_the_embedded_server_is_for_development(self, debug, count, tmp_path):
        with override_settings(
            COGWORKER_REDIS="embedded", COGWORKER_EMBEDDED_DIR=tmp_path, DEBUG=debug
        ):
            assert len(found("W003")) == count

    def test_it_needs_a_directory(self):
        with override_settings(COGWORKER_REDIS="embedded", COGWORKER_EMBEDDED_DIR=None):
            (error,) = found("E104")
        assert "set COGWORKER_EMBEDDED_DIR" in error.msg


class TestChannels:
    """W004"""

    def test_channels_has_a_runworker_too(self, monkeypatch):
        package = types.ModuleType("channels")
        package.__path__ = []
        package.__file__ = __file__
        monkeypatch.setitem(sys.modules, "channels", package)
        apps = ["django_cogworker", "tests.project", "channels"]
        with override_settings(INSTALLED_APPS=apps):
            (warning,) = found("W004")
        assert "runcogworker" in str(warning.hint)
        assert found("W004") == []


def not_callable_and_more() -> None: ...


NOT_CALLABLE = 3


@pytest.mark.parametrize(
    ("setting", "check_id"),
    [
        ("COGWORKER_CLIENT_MIDDLEWARE", "E101"),
        ("COGWORKER_SERVER_MIDDLEWARE", "E102"),
        ("COGWORKER_DEATH_HANDLERS", "E103"),
    ],
)
class TestDottedPaths:
    def test_what_is_there_and_callable_is_in_order(self, setting, check_id):
        with override_settings(**{setting: [f"{__name__}.not_callable_and_more"]}):
            assert all_ids() == []

    @pytest.mark.parametrize(
        ("path", "says"),
        [
            ("no.such.module", "No module named 'no'"),
            (f"{__name__}.nothing", "nothing"),
            (f"{__name__}.NOT_CALLABLE", "is not callable"),
        ],
    )
    def test_what_cannot_be_loaded_is_an_error(self, setting, check_id, path, says):
        with override_settings(**{setting: [path]}):
            (error,) = found(check_id)
            assert all_ids() == [f"django_cogworker.{check_id}"]
        assert setting in error.msg
        assert path in error.msg
        assert says in error.msg


class TestRedisTarget:
    """E104: the value has the right form, but no connection could be made with it."""

    @pytest.mark.parametrize(
        ("value", "says"),
        [
            ("redis://h:99999/0", "out of range"),
            ("redis://h:abc/0", "port is not a number"),
            ("redis://h/0?db=x", "db"),
            ("redis://h/0?retries=3", "retries"),
            ({"host": "h", "prt": 1}, "prt"),
            ({"host": "h", "port": "abc"}, "abc"),
            ({"host": "h", "db": "one"}, "one"),
            ({"unix_socket_path": "/s", "host": "h"}, "host"),
            ({"url": "redis://h", "sssl": True}, "sssl"),
        ],
    )
    def test_options_that_redis_py_does_not_take(self, value, says):
        with override_settings(COGWORKER_REDIS=value):
            (error,) = found("E104")
        assert says in error.msg

    @pytest.mark.parametrize(
        ("cache", "says"),
        [
            (None, "which CACHES does not have"),
            ({"BACKEND": "no.such.Cache"}, "No module named 'no'"),
            ({"BACKEND": DJANGO_REDIS_CACHE, "LOCATION": "redis://h"}, "not a django-redis cache"),
            (
                {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
                "not a django-redis cache",
            ),
            ({"BACKEND": REDIS_CACHE}, "Missing connections string"),
            ({"BACKEND": REDIS_CACHE, "LOCATION": "http://h"}, "Redis URL must specify"),
            (
                {
                    "BACKEND": REDIS_CACHE,
                    "LOCATION": "redis://h",
                    "OPTIONS": {"CLIENT_CLASS": "no.such.Client"},
                },
                "No module named 'no'",
            ),
        ],
    )
    def test_a_cache_alias_that_leads_nowhere(self, cache, says):
        caches = {"other": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
        caches["default"] = caches["other"]
        if cache is not None:
            caches["jobs"] = cache
        with override_settings(COGWORKER_REDIS={"cache": "jobs"}, CACHES=caches):
            (error,) = found("E104")
        assert "'jobs'" in error.msg
        assert says in error.msg


def test_no_check_talks_to_redis():
    """The tests' Redis address leads nowhere; a check that connected would take seconds or fail."""
    with override_settings(COGWORKER_REDIS="redis://192.0.2.1:6379/0"):
        assert all_ids() == []


POSTGRES = "django.db.backends.postgresql"


def advice(**row: Any) -> list[str]:
    """The ids of what a worker is told about a database; no connection is opened."""
    changed = {"more": {**connections.settings["default"], "ENGINE": POSTGRES, **row}}
    with mock.patch.object(connections, "settings", changed):
        found = run_checks(tags=["cogworker_worker"], include_deployment_checks=True)
    assert all("'more'" in each.msg for each in found)
    return sorted(str(each.id).removeprefix("django_cogworker.") for each in found)


class TestDatabases:
    """W042 to W044"""

    @pytest.mark.parametrize(
        ("row", "ids"),
        [
            ({}, ["W042"]),
            ({"CONN_MAX_AGE": 600}, ["W043"]),
            ({"CONN_MAX_AGE": None}, ["W043"]),
            ({"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}, []),
            ({"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}, ["W042"]),
            ({"OPTIONS": {"pool": True}}, ["W043", "W044"]),
            ({"OPTIONS": {"pool": {"max_size": 10}}, "CONN_HEALTH_CHECKS": True}, []),
            ({"OPTIONS": {"pool": {"max_size": 9}}, "CONN_HEALTH_CHECKS": True}, ["W044"]),
            ({"OPTIONS": {"pool": {"min_size": 10}}, "CONN_HEALTH_CHECKS": True}, []),
            (
                {
                    "ENGINE": "django.db.backends.oracle",
                    "OPTIONS": {"pool": {"min": 1}},
                    "CONN_HEALTH_CHECKS": True,
                },
                ["W044"],
            ),
            ({"ENGINE": "django.db.backends.sqlite3"}, []),
        ],
    )
    def test_advice_about_connections(self, row, ids):
        assert advice(**row) == ids

    def test_threads_of_the_event_loop_count(self):
        row = {"OPTIONS": {"pool": {"max_size": 10}}, "CONN_HEALTH_CHECKS": True}
        with override_settings(COGWORKER_ASYNC_QUEUES=["web"]):
            assert advice(**row) == ["W044"]

    def test_in_development_only_a_small_pool_is_worth_a_word(self):
        with override_settings(DEBUG=True):
            assert advice() == []
            assert advice(OPTIONS={"pool": True}) == ["W044"]

    def test_only_workers_and_deployments_are_told(self):
        changed = {"more": {**connections.settings["default"], "ENGINE": POSTGRES}}
        with mock.patch.object(connections, "settings", changed):
            assert not [each for each in all_ids() if each]


class TestRunserver:
    """W041"""

    @pytest.mark.parametrize(("debug", "number"), [(False, 1), (True, 0)])
    def test_a_worker_in_runserver_is_for_development(self, debug, number):
        with override_settings(COGWORKER_RUNSERVER=True, DEBUG=debug):
            assert len(found("W041")) == number
        assert found("W041") == []
