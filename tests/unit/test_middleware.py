"""Client and server middleware: order, life, what they may change, what happens when they stop a job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from django_cogworker import Job, current_job, job
from django_cogworker.client import push, push_bulk
from django_cogworker.exceptions import ConfigurationError, InvalidPayload
from django_cogworker.testing import fake, inline

Next = Callable[..., Any]

#: What the middleware below noted, in order.
seen: list[Any] = []


@pytest.fixture(autouse=True)
def _start_with_nothing_seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


class Plain(Job):
    def perform(self, *args: Any) -> Any:
        seen.append(("perform", *args))
        return args


@job
def function(value: int) -> int:
    seen.append("perform")
    return value


def noting(name: str) -> Callable[[Next], Next]:
    def factory(get_next: Next) -> Next:
        seen.append(f"made {name}")

        def middleware(*args: Any) -> Any:
            seen.append(f"{name} in")
            try:
                return get_next(*args)
            finally:
                seen.append(f"{name} out")

        return middleware

    return factory


outer, middle, inner = noting("outer"), noting("middle"), noting("inner")


class ByClass:
    """A factory may be a class, as with Django's middleware."""

    def __init__(self, get_next: Next) -> None:
        self.get_next = get_next
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        seen.append(f"call {self.calls}")
        return self.get_next(*args)


def stopping(get_next: Next) -> Next:
    return lambda payload: None


def stopping_odd(get_next: Next) -> Next:
    def middleware(payload: dict[str, Any]) -> Any:
        return None if payload["args"][0] % 2 else get_next(payload)

    return middleware


def twice(get_next: Next) -> Next:
    def middleware(payload: dict[str, Any]) -> Any:
        get_next({**payload, "jid": f"{payload['jid']}-again"})
        return get_next(payload)

    return middleware


def rewriting(get_next: Next) -> Next:
    def middleware(payload: dict[str, Any]) -> Any:
        payload["queue"] = "rewritten"
        payload["tenant"] = "acme"
        return get_next(payload)

    return middleware


def junk(get_next: Next) -> Next:
    def middleware(payload: dict[str, Any]) -> Any:
        payload["user"] = object()
        return get_next(payload)

    return middleware


def failing(get_next: Next) -> Next:
    def middleware(payload: dict[str, Any]) -> Any:
        raise LookupError("no tenant")

    return middleware


def enqueueing(get_next: Next) -> Next:
    """One that itself enqueues a job, which comes through it again."""

    def middleware(payload: dict[str, Any]) -> Any:
        if payload["class"] == Plain.job_name:
            function.perform_async(1)
        return get_next(payload)

    return middleware


def no_callable(get_next: Next) -> None:
    return None


def client(*names: str) -> override_settings:
    return override_settings(COGWORKER_CLIENT_MIDDLEWARE=[f"{__name__}.{each}" for each in names])


def server(*names: str) -> override_settings:
    return override_settings(COGWORKER_SERVER_MIDDLEWARE=[f"{__name__}.{each}" for each in names])


class TestClient:
    def test_the_first_listed_is_the_outermost(self):
        """B13"""
        with client("outer", "inner"), fake():
            jid = Plain.perform_async()
            assert [each["jid"] for each in Plain.jobs] == [jid]
        assert seen[-4:] == ["outer in", "inner in", "inner out", "outer out"]

    def test_the_chain_is_made_once_a_config(self):
        """B13, as the design has it: a factory is called once, not once a job."""
        with client("outer", "ByClass"), fake():
            for _ in range(3):
                Plain.perform_async()
            assert seen.count("made outer") == 1
            assert [each for each in seen if each.startswith("call")] == [
                "call 1",
                "call 2",
                "call 3",
            ]
        with client("outer", "ByClass"), fake():
            Plain.perform_async()
        assert seen.count("made outer") == 2
        assert seen[-2:] == ["call 1", "outer out"]

    def test_one_listed_twice_counts_once_at_its_later_place(self):
        """B14"""
        with client("outer", "inner", "outer"), fake():
            Plain.perform_async()
        assert [each for each in seen if each.endswith("in")] == ["inner in", "outer in"]

    def test_without_a_call_of_the_next_one_nothing_is_enqueued(self):
        with client("stopping"), fake() as transport:
            assert Plain.perform_async(1) is None
            assert Plain.perform_in(5, 1) is None
            assert push({"class": Plain}) is None
            assert asyncio.run(_enqueue()) is None
            assert Plain.perform_bulk([(1,), (2,)]) == [None, None]
            assert transport.jobs() == []

    def test_in_bulk_each_job_passes_and_the_answers_keep_their_order(self):
        """A9"""
        with client("stopping_odd"), fake():
            jids = Plain.perform_bulk([(n,) for n in range(6)])
            assert [jid is None for jid in jids] == [False, True] * 3
            assert [each["jid"] for each in Plain.jobs] == [jid for jid in jids if jid]

    def test_one_that_calls_twice_enqueues_twice(self):
        with client("twice"), fake():
            jids = Plain.perform_bulk([(1,), (2,)])
            assert [each["jid"] for each in Plain.jobs] == [
                f"{jids[0]}-again",
                jids[0],
                f"{jids[1]}-again",
                jids[1],
            ]

    def test_what_it_writes_into_the_payload_travels(self):
        with client("rewriting"), fake():
            for enqueue in (Plain.perform_async, lambda: Plain.perform_bulk([()])):
                Plain.clear()
                enqueue()
                (payload,) = Plain.jobs
                assert (payload["queue"], payload["tenant"]) == ("rewritten", "acme")

    def test_what_json_cannot_hold_is_an_error_that_names_the_field(self):
        with client("junk"), fake() as transport:
            with pytest.raises(InvalidPayload, match="'user'"):
                Plain.perform_async()
            assert transport.jobs() == []

    def test_what_it_raises_reaches_the_caller(self):
        with client("failing"), fake() as transport:
            with pytest.raises(LookupError, match="no tenant"):
                Plain.perform_async()
            with pytest.raises(LookupError):
                Plain.perform_bulk([()])
            assert transport.jobs() == []

    def test_one_may_enqueue_jobs_of_its_own(self):
        with client("enqueueing"), fake() as transport:
            jid = Plain.perform_async()
            jids = Plain.perform_bulk([(), ()])
            names = [each["class"] for each in transport.jobs()]
            assert names.count(function.job_name) == 3
            assert [each["jid"] for each in Plain.jobs] == [jid, *jids]

    def test_it_sees_the_payload_before_it_is_encoded(self):
        with client("capturing"), fake():
            Plain.set(queue="x").perform_in(60, 5)
        (payload,) = seen
        assert (payload["class"], payload["queue"], payload["args"]) == (Plain.job_name, "x", [5])
        assert payload["at"] > payload["created_at"]

    @pytest.mark.parametrize("path", ["no_callable", "missing"])
    def test_one_that_cannot_be_used_is_named(self, path):
        with client(path), fake(), pytest.raises(ConfigurationError, match=path):
            Plain.perform_async()

    def test_a_chain_that_could_not_be_made_is_made_when_it_is_mended(self):
        with client("missing"), fake(), pytest.raises(ConfigurationError):
            Plain.perform_async()
        with client("outer"), fake():
            assert Plain.perform_async()


def capturing(get_next: Next) -> Next:
    def middleware(payload: dict[str, Any]) -> Any:
        seen.append(dict(payload))
        return get_next(payload)

    return middleware


async def _enqueue() -> str | None:
    return await Plain.aperform_async(1)


def server_seeing(get_next: Next) -> Next:
    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        seen.append((job, payload, current_job().jid))
        return get_next(job, payload)

    return middleware


def server_answering(get_next: Next) -> Next:
    return lambda job, payload: ("answer", get_next(job, payload))


def server_stopping(get_next: Next) -> Next:
    return lambda job, payload: "not run"


def server_failing(get_next: Next) -> Next:
    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        get_next(job, payload)
        raise LookupError("afterwards")

    return middleware


def server_catching(get_next: Next) -> Next:
    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        try:
            return get_next(job, payload)
        except ValueError as error:
            seen.append(error)
            raise

    return middleware


class Failing(Job):
    def perform(self) -> None:
        raise ValueError("of the job")


class OddError(Job):
    def perform(self) -> None:
        raise SystemExit(3)


@pytest.mark.parametrize("way", ["fake", "inline"])
class TestServer:
    """B12, O226: the chain stands around `perform`, in both test modes as in a worker."""

    def run(self, way: str, target: Any, *args: Any) -> Any:
        if way == "inline":
            with inline():
                return target.perform_async(*args)
        with fake():
            target.perform_async(*args)
            return target.perform_one()

    def test_the_first_listed_is_the_outermost_and_perform_innermost(self, way):
        with server("outer", "middle"):
            self.run(way, Plain, 1)
        assert seen[-5:] == ["outer in", "middle in", ("perform", 1), "middle out", "outer out"]

    def test_the_chain_is_made_once_a_config(self, way):
        with server("outer"):
            for _ in range(3):
                self.run(way, Plain)
        assert seen.count("made outer") == 1
        assert seen.count("outer in") == 3

    def test_one_listed_twice_counts_once_at_its_later_place(self, way):
        """B14"""
        with server("outer", "inner", "outer"):
            self.run(way, Plain)
        assert [each for each in seen if each[-2:] == "in"] == ["inner in", "outer in"]

    def test_it_gets_the_job_and_its_payload(self, way):
        with server("server_seeing"):
            self.run(way, Plain, 1)
            self.run(way, function, 2)
        (plain, payload, jid), _, (func, func_payload, _), _ = seen
        assert isinstance(plain, Plain)
        assert plain.jid == jid == payload["jid"]
        assert payload["args"] == [1]
        assert func is function
        assert func_payload["class"] == function.job_name

    def test_without_a_call_of_the_next_one_perform_does_not_run(self, way):
        with server("server_stopping"):
            self.run(way, Plain)
        assert seen == []

    def test_what_it_raises_is_the_jobs_failure(self, way):
        with server("server_failing"), pytest.raises(LookupError, match="afterwards"):
            self.run(way, Plain)
        assert seen == [("perform",)]

    @pytest.mark.parametrize(("target", "error"), [(Failing, ValueError), (OddError, SystemExit)])
    def test_the_jobs_own_error_passes_through(self, way, target, error):
        with server("server_catching", "outer"), pytest.raises(error):
            self.run(way, target)
        assert seen[:3] == ["made outer", "outer in", "outer out"]
        assert [str(each) for each in seen[3:]] == (["of the job"] if error is ValueError else [])

    @pytest.mark.parametrize("path", ["no_callable", "missing"])
    def test_one_that_cannot_be_used_is_named(self, way, path):
        with server(path), pytest.raises(ConfigurationError, match=path):
            self.run(way, Plain)


def test_the_answer_of_the_server_chain_is_what_perform_one_returns():
    with server("server_answering"), fake():
        Plain.perform_async(1)
        assert Plain.perform_one() == ("answer", (1,))


def test_client_middleware_runs_in_the_test_modes():
    """Reference 9: the switch stands at the end of the client chain."""
    for mode in (fake, inline):
        with client("outer"), mode():
            push_bulk([{"class": Plain, "args": [1]}])
        assert "outer in" in seen
        seen.clear()
