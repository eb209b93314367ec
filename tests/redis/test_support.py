"""The tests' own tools that need a server: the server itself, and the proxy before it."""

from __future__ import annotations

import threading
import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until


class TestRedisServer:
    @pytest.mark.parametrize("unix", [False, True])
    def test_data_is_kept_over_a_crash_where_asked_for(self, make_redis_server, unix):
        server: RedisServer = make_redis_server(unix=unix, appendonly="yes")
        client, url = server.client(), server.url
        client.set("key", "value")
        server.restart(kill=True)
        assert server.url == url
        assert client.get("key") == b"value"

    def test_pause_and_resume(self, make_redis_server):
        server: RedisServer = make_redis_server()
        client = server.client(socket_timeout=0.05, retry=Retry(NoBackoff(), 0))
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        assert wait_until(client.ping)

    def test_a_paused_server_can_be_stopped(self, make_redis_server):
        server: RedisServer = make_redis_server()
        server.pause()
        server.stop()
        assert not server.running

    def test_options(self, make_redis_server):
        server: RedisServer = make_redis_server(maxmemory_policy="noeviction", maxmemory="50mb")
        assert server.client().config_get("maxmemory*")["maxmemory-policy"] == "noeviction"

    def test_what_does_not_start_says_why(self, make_redis_server):
        with pytest.raises(RuntimeError, match="did not start"):
            make_redis_server(no_such_option="1")

    def test_the_database_is_empty_for_each_test(self, redis_client):
        assert redis_client.dbsize() == 0
        redis_client.set("left", "over")

    test_the_database_is_empty_for_each_test_again = test_the_database_is_empty_for_each_test


@pytest.fixture
def proxy(make_proxy, redis_url):
    return make_proxy(redis_url)


@pytest.fixture
def through(proxy):
    """A client that goes through the proxy and never repeats a command by itself."""
    client = redis.Redis.from_url(
        proxy.url, protocol=2, socket_timeout=0.5, retry=Retry(NoBackoff(), 0)
    )
    yield client
    client.close()


class TestRedisProxy:
    def test_passes_everything(self, through, redis_client):
        big = b"x" * 300_000
        through.set("big", big)
        assert through.get("big") == big
        with through.pipeline() as pipe:
            for number in range(1000):
                pipe.rpush("list", number)
            pipe.execute()
        assert redis_client.llen("list") == 1000

    def test_a_lost_reply_was_obeyed(self, proxy, through, redis_client):
        rule = proxy.lose_reply(b"RPUSH", nth=2)
        through.rpush("list", "a")
        with pytest.raises(redis.ConnectionError):
            through.rpush("list", "b")
        assert rule.wait()
        assert redis_client.lrange("list", 0, -1) == [b"a", b"b"]
        through.rpush("list", "c")
        assert (rule.seen, rule.hits) == (3, 1)

    def test_a_lost_reply_may_hang(self, proxy, through, redis_client):
        proxy.lose_reply(b"RPUSH", then="hang")
        with pytest.raises(redis.TimeoutError):
            through.rpush("list", "a")
        assert redis_client.llen("list") == 1

    def test_a_lost_request_was_not(self, proxy, through, redis_client):
        proxy.lose_request(b"RPUSH", times=2)
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                through.rpush("list", "a")
        through.rpush("list", "b")
        assert redis_client.lrange("list", 0, -1) == [b"b"]

    def test_delay(self, proxy, through):
        rule = proxy.delay_reply(0.1, b"GET")
        start = time.monotonic()
        through.get("key")
        assert time.monotonic() - start >= 0.1
        proxy.remove(rule)

    def test_cut_and_down(self, proxy, through):
        through.ping()
        assert proxy.cut() == 1
        wait_until(lambda: _pings(through))
        proxy.down()
        assert not _pings(through)
        proxy.up()
        assert _pings(through)

    def test_half_open(self, proxy, through):
        through.ping()
        proxy.freeze()
        assert not _pings(through)
        proxy.thaw()
        assert _pings(through)

    def test_published_messages_pass(self, through, redis_client):
        with through.pubsub() as pubsub:
            pubsub.subscribe("channel")
            assert pubsub.get_message(timeout=5)["type"] == "subscribe"
            redis_client.publish("channel", "hello")
            assert pubsub.get_message(timeout=5)["data"] == b"hello"

    def test_the_server_may_be_away(self, make_redis_server, make_proxy):
        server: RedisServer = make_redis_server()
        proxy = make_proxy(server.url)
        client = redis.Redis.from_url(proxy.url, protocol=2, socket_timeout=1)
        assert client.ping()
        server.kill()
        assert not _pings(client)
        server.start()
        wait_until(lambda: _pings(client))
        client.close()

    def test_many_connections(self, proxy, redis_client):
        client = redis.Redis.from_url(proxy.url, protocol=2, socket_timeout=5)
        threads = [
            threading.Thread(target=lambda: [client.incr("n") for _ in range(20)])
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        assert redis_client.get("n") == b"400"


def _pings(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):
        return False
