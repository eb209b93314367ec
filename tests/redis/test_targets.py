"""Every form of `COGWORKER_REDIS` leads to a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.cache import caches
from django.core.checks import run_checks
from django.test import override_settings

from django_cogworker import Job
from django_cogworker.exceptions import ConfigurationError, PushError
from tests.support.needs import missing, need
from tests.support.redis_server import RedisServer, free_port

QUEUE = "cogworker:queue:default"


class Plain(Job):
    def perform(self, *args: Any) -> None: ...


def arrives(client: redis.Redis, setting: Any) -> bool:
    """Whether a job pushed with this setting is there."""
    before = client.llen(QUEUE)
    with override_settings(COGWORKER_REDIS=setting):
        assert Plain.perform_async(1)
    return client.llen(QUEUE) == before + 1


FORMS: dict[str, Callable[[str, int, int], Any]] = {
    "url": lambda host, port, db: f"redis://{host}:{port}/{db}",
    "url with query": lambda host, port, db: f"redis://{host}:{port}?db={db}",
    "url with redis-py's options": lambda host, port, db: (
        f"redis://{host}:{port}/{db}?socket_timeout=1&max_connections=2&protocol=3"
    ),
    "dict": lambda host, port, db: {"host": host, "port": port, "db": db},
    "dict of texts": lambda host, port, db: {"host": host, "port": str(port), "db": str(db)},
    "dict with url": lambda host, port, db: {"url": f"redis://{host}:{port}", "db": db},
    "dict with more": lambda host, port, db: {
        "host": host,
        "port": port,
        "db": db,
        "socket_keepalive": True,
        "health_check_interval": 30,
        "ssl": False,
    },
}


@pytest.mark.parametrize("db", [0, 3])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_tcp(redis_server, redis_url, form, db):
    client = redis_server.client(db)
    assert arrives(client, form("127.0.0.1", redis_server.port, db))


@pytest.mark.parametrize("db", [0, 3])
def test_unix_sockets(make_redis_server, db):
    server: RedisServer = make_redis_server(unix=True)
    client = server.client(db)
    path = str(server.socket_path)
    assert arrives(client, f"unix://{path}?db={db}")
    assert arrives(client, {"unix_socket_path": path, "db": db})
    assert arrives(client, {"url": f"unix://{path}", "db": db})


def test_passwords(make_redis_server):
    server: RedisServer = make_redis_server()
    admin = server.client()
    admin.config_set("requirepass", "p@ss/word")
    admin.acl_setuser("app", enabled=True, passwords="+s3cret", keys="*", commands=["+@all"])
    client = server.client(password="p@ss/word")
    port = server.port
    assert arrives(client, f"redis://:p%40ss%2Fword@127.0.0.1:{port}/0")
    assert arrives(client, {"host": "127.0.0.1", "port": port, "password": "p@ss/word"})
    assert arrives(client, f"redis://app:s3cret@127.0.0.1:{port}/0")
    user = {"host": "127.0.0.1", "port": port, "username": "app", "password": "s3cret"}
    assert arrives(client, user)


class TestCacheAlias:
    @pytest.fixture(params=["plain", "options", "list"])
    def alias(self, request, redis_server, redis_url):
        """A django-redis cache on database 5, by several ways to say so."""
        url = redis_server.url_of(5)
        options: dict[str, Any] = {}
        if request.param == "options":
            options = {
                "CLIENT_CLASS": "django_redis.client.DefaultClient",
                "SOCKET_TIMEOUT": 0.001,
                "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
                "COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor",
                "CONNECTION_POOL_KWARGS": {"max_connections": 1, "decode_responses": True},
                "IGNORE_EXCEPTIONS": True,
            }
        # Pools of django-redis are kept by URL alone, so each case has a URL of its own.
        location: Any = f"{url}?client_name={request.param}"
        jobs = {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": [location, location] if request.param == "list" else location,
            "KEY_PREFIX": "site",
            "VERSION": 3,
            "OPTIONS": options,
        }
        other = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
        with override_settings(CACHES={"default": other, "jobs": jobs}):
            yield redis_server.client(5)
            caches["jobs"].close()

    def test_its_server_and_database_are_used_but_not_its_prefix_pool_or_time_outs(self, alias):
        assert arrives(alias, {"cache": "jobs"})
        names = {each["name"] for each in alias.client_list() if each["db"] == "5"}
        assert "cogworker" in names
        assert all(key.startswith(b"cogworker:") for key in alias.keys("*"))

    @pytest.mark.parametrize("name", ["default", "no_such"])
    def test_an_alias_that_is_none_of_django_redis_is_an_error(self, alias, name):
        with override_settings(COGWORKER_REDIS={"cache": name}):
            with pytest.raises(ConfigurationError, match=f"'{name}'"):
                Plain.perform_async(1)
            assert "django_cogworker.E104" in {each.id for each in run_checks(tags=["cogworker"])}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """A directory with a self-signed certificate for 127.0.0.1."""
    directory: Path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *(need("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", directory / "key.pem", "-out", directory / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return directory


def test_tls(make_redis_server, certificate):
    tls_port, cert = free_port(), certificate / "cert.pem"
    try:
        server: RedisServer = make_redis_server(
            tls_port=tls_port,
            tls_cert_file=cert,
            tls_key_file=certificate / "key.pem",
            tls_ca_cert_file=cert,
            tls_auth_clients="no",
        )
    except RuntimeError as error:
        if "TLS" not in str(error) and "tls-port" not in str(error):
            raise
        missing("a Redis server with TLS")
    client = server.client()
    url = f"rediss://127.0.0.1:{tls_port}/0"
    assert arrives(client, f"{url}?ssl_ca_certs={cert}")
    assert arrives(client, f"{url}?ssl_cert_reqs=none")
    assert arrives(client, {"url": url, "ssl_ca_certs": str(cert)})
    where = {"host": "127.0.0.1", "port": tls_port}
    assert arrives(client, {**where, "ssl": True, "ssl_ca_certs": str(cert)})


def test_tls_with_a_certificate_that_nobody_vouches_for_is_refused(
    make_redis_server, certificate, monkeypatch
):
    monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 0.1)
    tls_port, cert = free_port(), certificate / "cert.pem"
    try:
        make_redis_server(
            tls_port=tls_port, tls_cert_file=cert, tls_key_file=certificate / "key.pem",
            tls_ca_cert_file=cert, tls_auth_clients="no",
        )  # fmt: skip
    except RuntimeError as error:
        if "TLS" not in str(error) and "tls-port" not in str(error):
            raise
        missing("a Redis server with TLS")
    with override_settings(COGWORKER_REDIS=f"rediss://127.0.0.1:{tls_port}/0"):
        with pytest.raises(PushError, match="certificate"):
            Plain.perform_async(1)


def test_the_embedded_server(tmp_path_factory):
    from django_cogworker.store.embedded import ensure_server, stop_server
    from tests.support.redis_server import find_binary

    directory = tmp_path_factory.mktemp("e")
    with override_settings(
        COGWORKER_REDIS="embedded",
        COGWORKER_EMBEDDED_DIR=directory,
        COGWORKER_EMBEDDED_BINARY=find_binary(),
    ):
        try:
            assert Plain.perform_async(1)
            client = redis.Redis(unix_socket_path=str(ensure_server(directory)), protocol=2)
            assert client.llen(QUEUE) == 1
            client.close()
        finally:
            stop_server(directory)


def test_a_changed_setting_leads_elsewhere_at_once(make_redis_server, redis_url, redis_client):
    """Pools are made anew, and the old ones leave no connection behind."""
    other: RedisServer = make_redis_server()
    assert arrives(redis_client, redis_url)
    assert arrives(other.client(), other.url)
    assert arrives(redis_client, redis_url)
    assert redis_client.llen(QUEUE) == 2
    names = [each["name"] for each in other.client().client_list()]
    assert "cogworker" not in names
