"""How jobs are declared: options, names, signatures, functions; and the forms of a call."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import inspect
import pickle
import re
import sys
import textwrap
import time
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from django.utils import timezone

from django_cogworker import DISCARD, KILL, Job, current_job, job
from django_cogworker.client import push
from django_cogworker.exceptions import (
    ArgumentError,
    ConfigurationError,
    InvalidOption,
    InvalidPayload,
    NoJobContext,
    UnknownJob,
    UnknownOption,
)
from django_cogworker.jobs import registry
from django_cogworker.testing import fake, inline

T = TypeVar("T")


class Plain(Job):
    def perform(self, *args: Any) -> Any:
        return args


class Mail(Job, queue="mail", retry=5, tags=["post"], extra={"tenant": {"id": 1}}):
    def perform(self, *args: Any) -> None: ...


class Urgent(Mail, priority=50, retry=False):
    pass


class Abstract(Job, queue="reports", on_commit=False):
    """No perform: a base for others, and no job itself."""


class Report(Abstract):
    def perform(self) -> None: ...


class Retrying(Job, retry=3):
    pass


class LowQueue(Job, queue="low", priority=-5):
    pass


class OfBoth(LowQueue, Retrying):
    def perform(self) -> None: ...


class Once(Job, at_most_once=True):
    def perform(self) -> None: ...


class OftenAgain(Once, at_most_once=False):
    pass


def only(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    (payload,) = jobs
    return payload


def payload_of(enqueue: Callable[[], Any]) -> dict[str, Any]:
    with fake() as transport:
        enqueue()
        return only(transport.jobs())


@pytest.fixture
def module(monkeypatch):
    """A module to define job classes in, taken out of the registry afterwards."""
    made = types.ModuleType("made_up")
    monkeypatch.setitem(sys.modules, "made_up", made)
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    monkeypatch.setattr(registry, "_aliases", dict(registry._aliases))

    def run(source: str) -> types.ModuleType:
        exec("from django_cogworker import Job, job\n" + textwrap.dedent(source), made.__dict__)
        return made

    return run


# -- options


class TestOptions:
    def test_defaults_of_the_payload(self):
        """A2"""
        with fake():
            before = time.time()
            jid = Plain.perform_async(1, "two")
            payload = only(Plain.jobs)
        assert payload.pop("created_at") == pytest.approx(before, abs=2)
        assert payload.pop("enqueued_at") == pytest.approx(before, abs=2)
        assert re.fullmatch("[0-9a-f]{24}", str(jid))
        assert payload == {
            "class": f"{__name__}.Plain",
            "args": [1, "two"],
            "queue": "default",
            "retry": True,
            "jid": jid,
            "v": 1,
        }

    def test_each_option_reaches_the_payload(self):
        payload = payload_of(Urgent.perform_async)
        assert (payload["queue"], payload["retry"], payload["priority"]) == ("mail", False, 50)
        assert payload["tags"] == ["post"]
        assert payload["tenant"] == {"id": 1}
        assert "extra" not in payload
        assert "on_commit" not in payload

    def test_a_subclass_inherits_and_leaves_its_parent_alone(self):
        """A8"""
        payload = payload_of(Mail.perform_async)
        assert payload["retry"] == 5
        assert "priority" not in payload

    def test_a_base_without_perform_hands_its_options_down(self):
        assert payload_of(Report.perform_async)["queue"] == "reports"

    def test_options_come_from_all_bases_in_the_order_of_python(self):
        payload = payload_of(OfBoth.perform_async)
        assert (payload["queue"], payload["retry"], payload["priority"]) == ("low", 3, -5)

    def test_set_is_for_one_call(self):
        call = Mail.set(queue="urgent", retry=False).set(priority=1)
        payload = payload_of(call.perform_async)
        assert (payload["queue"], payload["retry"], payload["priority"]) == ("urgent", False, 1)
        assert payload_of(Mail.perform_async)["queue"] == "mail"

    def test_set_takes_tags_and_extra_anew(self):
        payload = payload_of(Mail.set(tags=["a", "b"], extra={"x": 1}).perform_async)
        assert payload["tags"] == ["a", "b"]
        assert payload["x"] == 1
        assert "tenant" not in payload

    def test_what_middleware_does_to_a_payload_stays_in_that_payload(self):
        """Lists and dicts of the class's options must not be shared between jobs."""
        with override_settings(COGWORKER_CLIENT_MIDDLEWARE=[f"{__name__}.meddle"]), fake():
            Mail.perform_async()
            Mail.perform_async()
            assert [each["tags"] for each in Mail.jobs] == [["post", "meddled"]] * 2
            assert [each["tenant"] for each in Mail.jobs] == [{"id": 2}] * 2

    def test_extra_is_taken_at_the_declaration(self):
        data = {"x": [1]}
        call = Plain.set(extra=data)
        data["x"].append(2)
        assert payload_of(call.perform_async)["x"] == [1]

    def test_at_most_once_means_no_retry(self):
        """DR-12"""
        payload = payload_of(Once.perform_async)
        assert (payload["at_most_once"], payload["retry"]) == (True, False)

    def test_at_most_once_can_be_taken_back(self):
        payload = payload_of(OftenAgain.perform_async)
        assert payload["retry"] is True
        assert "at_most_once" not in payload

    @pytest.mark.parametrize("keywords", ["retry=True", "retry=1"])
    def test_at_most_once_and_retry_contradict_each_other_at_import(self, module, keywords):
        with pytest.raises(InvalidOption, match="contradict"):
            module(f"class A(Job, at_most_once=True, {keywords}):\n    def perform(self): ...")
        with pytest.raises(InvalidOption, match="contradict"):
            Once.set(retry=3)
        with pytest.raises(InvalidOption, match="contradict"):
            Mail.set(at_most_once=True)

    @pytest.mark.parametrize("retry", ["False", "0"])
    def test_at_most_once_may_say_that_it_is_not_retried(self, module, retry):
        made = module(
            f"class A(Job, at_most_once=True, retry={retry}):\n    def perform(self): ..."
        )
        assert payload_of(made.A.perform_async)["retry"] is False

    @pytest.mark.parametrize(
        ("keyword", "nearest"),
        [("queu='x'", "queue"), ("prioritty=1", "priority"), ("retries=3", "retry")],
    )
    def test_a_misspelt_option_is_an_error_at_import_with_the_nearest_name(
        self, module, keyword, nearest
    ):
        for source in (
            f"class A(Job, {keyword}):\n    def perform(self): ...",
            f"class A(Job, {keyword}): ...",
            f"@job({keyword})\ndef f(): ...",
        ):
            with pytest.raises(UnknownOption, match=f"made_up.*Did you mean '{nearest}'") as caught:
                module(source)
            assert isinstance(caught.value, TypeError)
        name = keyword.partition("=")[0]
        misspelt: Any = {name: 1}
        with pytest.raises(UnknownOption, match=f"Plain.set.*'{name}'"):
            Plain.set(**misspelt)

    def test_an_option_like_none_lists_those_that_are(self):
        with pytest.raises(UnknownOption, match="Known are: .*at_most_once.*queue.*extra="):
            Plain.set(xyzzy=1)  # type: ignore[call-arg]

    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [
            ("queue", "", "1 to 200 characters"),
            ("queue", None, "1 to 200 characters"),
            ("queue", "a b", "no spaces"),
            ("queue", "mail:priority", "':priority'"),
            ("retry", -1, "a number of retries"),
            ("retry", None, "True"),
            ("retry", 2.5, "True"),
            ("retry", "5", "True"),
            ("priority", 101, "-100 to 100"),
            ("priority", -101, "-100 to 100"),
            ("priority", True, "whole number"),
            ("priority", 1.0, "whole number"),
            ("priority", "high", "whole number"),
            ("on_commit", 1, "True, False, or the alias"),
            ("on_commit", [], "True, False, or the alias"),
            ("at_most_once", 1, "True or False"),
            ("at_most_once", None, "True or False"),
            ("tags", "one", "a list of texts"),
            ("tags", [1], "a list of texts"),
            ("tags", [""], "a list of texts"),
            ("tags", None, "a list of texts"),
            ("extra", [], "a dict"),
            ("extra", {1: 2}, "texts as keys"),
            ("extra", {"jid": "x"}, "our own fields (jid)"),
            ("extra", {"queue": "x", "class": "y"}, "(class, queue)"),
            ("extra", {"x": 1j}, "JSON"),
            ("extra", {"x": float("nan")}, "JSON"),
        ],
        ids=repr,
    )
    def test_a_bad_value_names_the_class_the_option_and_what_is_allowed(self, name, value, allowed):
        with pytest.raises(InvalidOption) as caught:
            Plain.set(**{name: value})
        assert f"{__name__}.Plain.set(): {name}={value!r}; allowed is " in str(caught.value)
        assert allowed in str(caught.value)
        with pytest.raises(InvalidOption, match=re.escape(name)):
            type("A", (Job,), {"__module__": __name__}, **{name: value})

    @pytest.mark.parametrize("priority", [-100, -1, 0, 1, 100])
    def test_priorities(self, priority):
        payload = payload_of(Plain.set(priority=priority).perform_async)
        assert payload.get("priority", 0) == priority


def meddle(get_next: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def push_on(payload: dict[str, Any]) -> Any:
        payload["tags"].append("meddled")
        payload["tenant"]["id"] = 2
        return get_next(payload)

    return push_on


# -- names


class Outer:
    class Inner(Job, aliases=["tests.old.Inner", "older.Inner"]):
        def perform(self) -> str:
            return self.payload["class"]


class TestNames:
    def test_a_class_is_named_by_module_and_qualified_name(self):
        """A4"""
        assert Plain.job_name == f"{__name__}.Plain"
        assert Outer.Inner.job_name == f"{__name__}.Outer.Inner"
        assert payload_of(lambda: push({"class": Plain}))["class"] == Plain.job_name
        assert payload_of(lambda: push({"class": double}))["class"] == double.job_name

    def test_a_class_inside_a_function_is_refused(self):
        with pytest.raises(ConfigurationError, match="inside a function"):

            class Local(Job):
                def perform(self) -> None: ...

    def test_a_base_inside_a_function_is_no_job_and_so_allowed(self):
        class Local(Job, queue="x"):
            pass

        with pytest.raises(ConfigurationError, match="no perform"):
            Local.perform_async()

    def test_a_function_inside_a_function_is_refused(self):
        with pytest.raises(ConfigurationError, match="inside a function"):

            @job
            def local() -> None: ...

        with pytest.raises(ConfigurationError, match="inside a function"):
            job(lambda: None)

    @pytest.mark.parametrize("name", ["tests.old.Inner", "older.Inner", f"{__name__}.Outer.Inner"])
    def test_old_names_keep_working(self, name):
        with fake() as transport:
            push({"class": name})
            assert transport.perform_one() == name

    def test_an_alias_that_belongs_to_another_class_is_refused(self, module):
        with pytest.raises(
            ConfigurationError, match=r"made_up.A has the alias 'older.Inner'.*Outer"
        ):
            module("class A(Job, aliases=['older.Inner']):\n    def perform(self): ...")
        with pytest.raises(ConfigurationError, match="belongs to"):
            module(f"class A(Job, aliases=[{Plain.job_name!r}]):\n    def perform(self): ...")

    @pytest.mark.parametrize("aliases", ["'old.name'", "[1]", "['']", "[None]"])
    def test_aliases_are_a_list_of_names(self, module, aliases):
        """A single text would be taken letter by letter."""
        with pytest.raises(ConfigurationError, match="aliases"):
            module(f"class A(Job, aliases={aliases}):\n    def perform(self): ...")
        with pytest.raises(ConfigurationError, match="aliases"):
            module(f"@job(aliases={aliases})\ndef f(): ...")

    def test_a_class_made_anew_replaces_the_old_one(self, module):
        """What a reload does."""
        source = "class A(Job, aliases=['a']):\n    def perform(self): return {}"
        old, new = module(source.format(1)).A, module(source.format(2)).A
        assert old is not new
        for name in ("made_up.A", "a"):
            with fake() as transport:
                push({"class": name})
                assert transport.perform_one() == 2

    def test_a_real_name_wins_over_an_alias(self, module):
        made = module("class A(Job, aliases=['made_up.B']):\n    def perform(self): return 'A'")
        assert registry.find("made_up.B").target is made.A
        module("class B(Job):\n    def perform(self): return 'B'")
        with fake() as transport:
            push({"class": "made_up.B"})
            assert transport.perform_one() == "B"

    def test_an_unknown_name_is_an_error_that_says_where_jobs_live(self):
        with fake() as transport:
            push({"class": "os.system", "args": ["true"]})
            with pytest.raises(UnknownJob, match=r"'os.system'.*<app>/jobs.py"):
                transport.perform_one()

    def test_a_name_is_never_imported(self):
        """RQ-14: what lies in Redis cannot make a process load code."""
        assert "antigravity" not in sys.modules
        with inline(), pytest.raises(UnknownJob):
            push({"class": "antigravity.Fly"})
        assert "antigravity" not in sys.modules

    def test_jobs_and_tasks_of_installed_apps_are_discovered(self):
        """PR-9"""
        assert registry.find("tests.project.jobs.Append").name == "tests.project.jobs.Append"

    def test_the_base_itself_cannot_be_enqueued(self):
        for cls in (Job, Abstract):
            with pytest.raises(ConfigurationError, match="no perform"):
                cls.perform_async()
            with pytest.raises((ConfigurationError, InvalidPayload)):
                push({"class": cls})


# -- perform


class Container(Job, Generic[T]):
    pass


class IntContainer(Container[int]):
    def perform(self, value: int) -> int:
        return value


class Static(Job):
    @staticmethod
    def perform(a: int, b: int = 2) -> tuple[int, int]:
        return a, b


class ClassLevel(Job):
    @classmethod
    def perform(cls, a: int) -> tuple[str, int]:
        return cls.__name__, a


class Mixin:
    def perform(self, a: int) -> int:
        return a


class Mixed(Mixin, Job, queue="mixed"):
    pass


def passed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Decorated(Job):
    @passed_on
    def perform(self, a: int) -> int:
        return a


class DecoratedAsync(Job):
    @passed_on
    async def perform(self, a: int) -> int:
        await asyncio.sleep(0)
        return a


class TestPerform:
    @pytest.mark.parametrize(
        ("cls", "result"),
        [
            (IntContainer, 1),
            (Static, (1, 2)),
            (ClassLevel, ("ClassLevel", 1)),
            (Mixed, 1),
            (Decorated, 1),
            (DecoratedAsync, 1),
        ],
    )
    def test_perform_in_other_shapes(self, cls, result):
        with fake():
            cls.perform_async(1)
            assert cls.perform_one() == result
            with pytest.raises(ArgumentError):
                cls.perform_async()

    @pytest.mark.parametrize("kind", ["def", "async def"])
    def test_a_generator_would_do_nothing_and_is_refused(self, module, kind):
        with pytest.raises(ConfigurationError, match=r"made_up.A is a generator"):
            module(f"class A(Job):\n    {kind} perform(self):\n        yield 1")
        with pytest.raises(ConfigurationError, match=r"made_up.f is a generator"):
            module(f"@job\n{kind} f():\n    yield 1")

    def test_a_perform_that_is_no_method_is_refused(self, module):
        with pytest.raises(ConfigurationError, match=r"made_up.A.perform is 3"):
            module("class A(Job):\n    perform = 3")

    @pytest.mark.parametrize("errors", ["ValueError", "(ValueError, 3)", "[ValueError]", "None"])
    def test_discard_on_is_a_tuple_of_exceptions(self, module, errors):
        with pytest.raises(ConfigurationError, match="discard_on is a tuple"):
            module(f"class A(Job):\n    discard_on = {errors}\n    def perform(self): ...")
        with pytest.raises(ConfigurationError, match="discard_on is a tuple"):
            module(f"@job(discard_on={errors})\ndef f(): ...")


class Signature(Job):
    def perform(self, a: int, b: int = 2, /, c: int = 3, *, d: int, e: int = 5) -> None: ...


class TwoOrMore(Job):
    def perform(self, a: int, b: int, *rest: int) -> None: ...


class NoArguments(Job):
    def perform(self) -> None: ...


class TestSignature:
    """AR-8: a call that cannot work fails where it is made, not in the worker."""

    @pytest.mark.parametrize(
        ("cls", "args", "kwargs"),
        [
            (Signature, (1,), {"d": 4}),
            (Signature, (1, 2, 3), {"d": 4, "e": 5}),
            (Signature, (1, 2), {"c": 3, "d": 4}),
            (TwoOrMore, (1, 2), {}),
            (TwoOrMore, (1, 2, 3, 4, 5), {}),
            (TwoOrMore, (), {"b": 1, "a": 2}),
            (NoArguments, (), {}),
        ],
    )
    def test_what_fits(self, cls, args, kwargs):
        with fake():
            cls.perform_async(*args, **kwargs)
            cls.perform_in(5, *args, **kwargs)
            cls.perform_at(5, *args, **kwargs)
            assert len(cls.jobs) == 3

    @pytest.mark.parametrize(
        ("cls", "args", "kwargs"),
        [
            (Signature, (), {}),
            (Signature, (1,), {}),
            (Signature, (1, 2, 3, 4), {"d": 4}),
            (Signature, (1,), {"d": 4, "f": 6}),
            (Signature, (), {"a": 1, "d": 4}),
            (Signature, (1, 2, 3), {"c": 3, "d": 4}),
            (TwoOrMore, (1,), {}),
            (TwoOrMore, (1, 2), {"a": 1}),
            (NoArguments, (1,), {}),
            (NoArguments, (), {"x": 1}),
        ],
    )
    def test_what_does_not_fit_is_an_error_with_the_signature(self, cls, args, kwargs):
        with fake():
            for enqueue in (
                lambda: cls.perform_async(*args, **kwargs),
                lambda: cls.perform_in(5, *args, **kwargs),
                lambda: cls.perform_at(5, *args, **kwargs),
                lambda: cls.set(queue="x").perform_async(*args, **kwargs),
                lambda: asyncio.run(cls.aperform_async(*args, **kwargs)),
            ):
                with pytest.raises(ArgumentError, match=rf"{cls.__name__} takes \(") as caught:
                    enqueue()
                assert isinstance(caught.value, TypeError)
            assert cls.jobs == []

    @pytest.mark.parametrize("item", ["text", 3, None, {1, 2}, b"x", (x for x in "ab")])
    def test_bulk_takes_sequences_and_dicts(self, item):
        with fake(), pytest.raises(ArgumentError, match=r"perform_bulk, item 1: .*tuple or list"):
            Plain.perform_bulk([(1,), item])

    def test_bulk_says_which_item_does_not_fit(self):
        with fake(), pytest.raises(ArgumentError, match=r"item 2: .*NoArguments takes \(\)"):
            NoArguments.perform_bulk([(), (), (1,)])
        with fake(), pytest.raises(ArgumentError, match="item 0: "):
            Plain.perform_bulk([{1: 2}])  # type: ignore[dict-item]

    @pytest.mark.parametrize("calls", [3, None])
    def test_bulk_of_what_is_no_iterable(self, calls):
        with fake(), pytest.raises(TypeError, match="not iterable"):
            Plain.perform_bulk(calls)

    def test_bulk_of_a_mapping_or_text_is_a_mistake(self):
        for calls in ({"a": 1}, "ab"):
            with fake(), pytest.raises(ArgumentError, match="item 0"):
                Plain.perform_bulk(calls)


# -- functions


@job(queue="low", priority=3, tags=["x"], extra={"y": 1}, aliases=["old.double"])
def double(value: int, *, times: int = 2) -> int:
    """Double it."""
    return value * times


@job
async def slow_double(value: int) -> int:
    await asyncio.sleep(0)
    return value * 2


@job()
def attempt() -> tuple[str, int]:
    return current_job().jid, current_job().attempt


class TestFunctions:
    def test_it_stays_callable_as_itself(self):
        assert double(4) == 8
        assert double(4, times=3) == 12
        assert asyncio.run(_awaited(slow_double)) == 6

    def test_it_keeps_what_describes_it(self):
        assert double.__name__ == "double"
        assert double.__doc__ == "Double it."
        assert list(inspect.signature(double).parameters) == ["value", "times"]
        assert repr(double) == f"<job {__name__}.double>"

    def test_it_can_be_pickled_as_functions_can(self):
        assert pickle.loads(pickle.dumps(double)) is double

    def test_it_takes_options_as_classes_do(self):
        payload = payload_of(lambda: double.perform_async(4))
        assert payload["class"] == f"{__name__}.double"
        assert (payload["queue"], payload["priority"], payload["tags"]) == ("low", 3, ["x"])
        assert payload["y"] == 1
        assert payload_of(lambda: double.set(queue="high").perform_async(1))["queue"] == "high"

    @pytest.mark.parametrize("name", ["old.double", f"{__name__}.double"])
    def test_it_is_found_by_name_and_alias(self, name):
        with fake() as transport:
            push({"class": name, "args": [4], "kwargs": {"times": 5}})
            assert transport.perform_one() == 20

    def test_coroutine_functions_run(self):
        with fake():
            slow_double.perform_async(4)
            assert slow_double.perform_one() == 8

    def test_all_forms(self):
        with fake():
            double.perform_async(1)
            double.perform_in(5, 1)
            double.perform_at(timezone.now(), 1)
            double.perform_bulk([(1,), {"value": 2, "times": 3}])
            assert len(double.jobs) == 5
            assert double.drain() == 5
            double.perform_async(1)
            double.clear()
            assert double.jobs == []

    def test_its_context(self):
        with fake():
            jid = attempt.perform_async()
            assert attempt.perform_one() == (jid, 1)

    def test_its_arguments_are_checked(self):
        with pytest.raises(ArgumentError, match=r"double takes \(value"):
            double.perform_async()  # type: ignore[call-arg]

    @pytest.mark.parametrize("thing", [Plain, int, 3, "x", functools.partial(print, 1)], ids=repr)
    def test_it_takes_functions_only(self, thing):
        with pytest.raises(ConfigurationError):
            job(thing)

    def test_hooks_are_keywords(self, module):
        made = module(
            """
            @job(retry_in=lambda count, error: 5, retries_exhausted=print, discard_on=(KeyError,))
            def f(): ...
            """
        )
        definition = registry.find(made.f.job_name)
        assert definition.retry_in is not None
        assert definition.retry_in(1, ValueError()) == 5
        assert definition.retries_exhausted is print
        assert definition.discard_on == (KeyError,)


async def _awaited(function: Any) -> Any:
    return await function(3)


# -- when


class TestWhen:
    @pytest.mark.parametrize("delay", [60, 60.0, dt.timedelta(minutes=1)])
    def test_in_is_from_now(self, delay):
        """A5"""
        before = time.time()
        payload = payload_of(lambda: Plain.perform_in(delay, 1))
        assert before + 60 <= payload["at"] <= time.time() + 60
        assert "enqueued_at" not in payload

    @pytest.mark.parametrize("moment", [1_000_000_000, 4_000_000_000.5])
    def test_in_with_a_very_large_number_means_a_moment(self, moment):
        """A5"""
        assert payload_of(lambda: Plain.perform_in(moment))["at"] == moment

    def test_in_just_below_is_a_delay(self):
        assert payload_of(lambda: Plain.perform_in(999_999_999))["at"] > 1_700_000_000

    @pytest.mark.parametrize(
        "moment",
        [
            dt.datetime(2030, 7, 1, 12, tzinfo=dt.UTC),
            dt.datetime(2030, 7, 1, 14, tzinfo=ZoneInfo("Europe/Paris")),
            dt.datetime(2030, 7, 1, 12, tzinfo=dt.UTC).timestamp(),
            int(dt.datetime(2030, 7, 1, 12, tzinfo=dt.UTC).timestamp()),
        ],
    )
    def test_at(self, moment):
        expected = dt.datetime(2030, 7, 1, 12, tzinfo=dt.UTC).timestamp()
        assert payload_of(lambda: Plain.perform_at(moment))["at"] == expected
        assert payload_of(lambda: only_jid(Plain.perform_bulk([()], at=moment)))["at"] == expected

    @pytest.mark.parametrize("when", [0, -5, dt.timedelta(-1)])
    def test_the_past_is_allowed_and_due_at_once(self, when):
        """A6: it still goes the way of scheduled jobs."""
        assert payload_of(lambda: Plain.perform_in(when))["at"] <= time.time()

    def test_at_a_second_time_of_the_clock(self):
        paris = ZoneInfo("Europe/Paris")
        when = dt.datetime(2026, 10, 25, 2, 30, tzinfo=paris)
        first = payload_of(lambda: Plain.perform_at(when))["at"]
        second = payload_of(lambda: Plain.perform_at(when.replace(fold=1)))["at"]
        assert second - first == 3600

    @pytest.mark.parametrize(
        "when",
        [
            "soon",
            None,
            True,
            [],
            Decimal(5),
            dt.date(2030, 1, 1),
            float("nan"),
            float("inf"),
            float("-inf"),
            1e300,
            10**400,
            -(10**400),
        ],
        ids=lambda when: f"{when!r:.20}",
    )
    def test_what_is_no_time_is_refused(self, when: Any):
        at: Any = "none" if when is None else when  # bulk takes None for "now"
        with fake() as transport:
            for enqueue in (
                lambda: Plain.perform_in(when),
                lambda: Plain.perform_at(when),
                lambda: Plain.set(queue="x").perform_in(when),
                lambda: Plain.perform_bulk([(1,)], at=at),
            ):
                with pytest.raises(ArgumentError):
                    enqueue()
            assert transport.jobs() == []

    def test_at_takes_no_naive_datetime_and_no_timedelta(self):
        with pytest.raises(ArgumentError, match="no time zone; use timezone.make_aware"):
            Plain.perform_at(dt.datetime(2030, 1, 1))
        with pytest.raises(ArgumentError, match="is no time"):
            Plain.perform_at(dt.timedelta(5))  # type: ignore[arg-type]

    def test_in_takes_no_datetime(self):
        with pytest.raises(ArgumentError, match="is no time"):
            Plain.perform_in(timezone.now())  # type: ignore[arg-type]

    @pytest.mark.parametrize("delay", [dt.timedelta.max, dt.timedelta.min])
    def test_beyond_the_calendar(self, delay):
        with pytest.raises(ArgumentError, match="no time that can come"):
            Plain.perform_in(delay)


def only_jid(jids: list[str | None]) -> str | None:
    (jid,) = jids
    return jid


# -- context


class Context(Job):
    def perform(self) -> dict[str, Any]:
        assert current_job() is self.context
        self.at(50, "half")
        self.store(rows=3)
        return {
            "jid": self.jid,
            "attempt": self.attempt,
            "stopping": self.stopping,
            "cancelled": self.cancelled,
            "class": self.payload["class"],
        }


class AsyncContext(Job):
    async def perform(self) -> tuple[str, str]:
        await asyncio.sleep(0)
        return self.jid, current_job().jid


class Nested(Job):
    def perform(self, depth: int) -> list[str]:
        before = current_job().jid
        inner: list[str] = []
        if depth:
            with fake():
                Nested.perform_async(depth - 1)
                inner = Nested.perform_one()
        assert current_job().jid == before == self.jid
        return [self.jid, *inner]


class TestContext:
    def test_what_a_job_knows_of_itself(self):
        with fake():
            jid = Context.perform_async()
            assert Context.perform_one() == {
                "jid": jid,
                "attempt": 1,
                "stopping": False,
                "cancelled": False,
                "class": Context.job_name,
            }

    @pytest.mark.parametrize(("failures", "attempt"), [(0, 1), (4, 5), ("junk", 1), (-1, 1)])
    def test_the_attempt_counts_the_failures_before(self, failures, attempt):
        with fake():
            push({"class": Context, "retry_count": failures})
            assert Context.perform_one()["attempt"] == attempt

    def test_coroutines_have_it_too(self):
        with fake():
            jid = AsyncContext.perform_async()
            assert AsyncContext.perform_one() == (jid, jid)

    def test_a_job_inside_a_job_gives_the_context_back(self):
        with fake():
            Nested.perform_async(3)
            assert len(set(Nested.perform_one())) == 4

    def test_outside_a_job_there_is_none(self):
        with pytest.raises(NoJobContext):
            current_job()
        with pytest.raises(NoJobContext, match="Plain runs outside a worker"):
            _ = Plain().jid
        with fake():
            Plain.perform_async()
            Plain.perform_one()
        with pytest.raises(NoJobContext):
            current_job()

    def test_there_is_none_after_an_error_either(self):
        with fake():
            push({"class": Plain, "args": [{"$": "unknown tag"}], "kwargs": {"no": "such"}})
            with pytest.raises(TypeError):
                Plain.perform_one()
        with pytest.raises(NoJobContext):
            current_job()

    def test_perform_can_be_called_directly(self):
        assert Plain().perform(1) == (1,)


def test_the_public_names():
    import django_cogworker

    for name in django_cogworker.__all__:
        assert getattr(django_cogworker, name) is not None
        assert name in dir(django_cogworker)
    assert {KILL, DISCARD}
    with pytest.raises(AttributeError, match="no attribute 'Jobb'"):
        _ = django_cogworker.Jobb
