"""Options of jobs for tasks: by the decorator, by `OPTIONS`, and what is said where they are wrong."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import Error, Warning

from django_cogworker.jobs import registry
from django_cogworker.tasks import CogworkerBackend, CogworkerTask, definitions, loading, task
from django_cogworker.tasks.compat import InvalidTask, task_backends
from django_cogworker.testing import disabled, fake
from tests.tasked import letters, tasks

ADD = "tests.tasked.tasks.add"


def configure(settings: Any, options: Any, **more: Any) -> CogworkerBackend:
    backend = "django_cogworker.tasks.CogworkerBackend"
    settings.TASKS = {"default": {"BACKEND": backend, "QUEUES": [], "OPTIONS": options, **more}}
    found = task_backends["default"]
    assert isinstance(found, CogworkerBackend)
    return found


def payload_of(enqueue: Any) -> dict[str, Any]:
    with fake() as transport:
        enqueue()
        (payload,) = transport.jobs()
    return payload


def test_the_decorators_options_are_the_jobs():
    payload = payload_of(tasks.optioned.enqueue)
    assert (payload["retry"], payload["timeout"], payload["tags"]) == (3, 30, ["blue"])
    assert isinstance(tasks.optioned, CogworkerTask)
    assert pickle.loads(pickle.dumps(tasks.optioned)) == tasks.optioned
    assert payload_of(lambda: tasks.once.enqueue("a"))["unique"] == "until_executed"


def test_options_survive_using():
    assert payload_of(tasks.optioned.using(priority=3).enqueue)["retry"] == 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (3, 30)),
        ({"retry": 7, "timeout": 9}, (3, 30)),
        ({"tasks": {"tests.tasked.tasks.optioned": {"retry": 9}}}, (9, 30)),
        ({"retry": 7, "tasks": {"tests.tasked.tasks.optioned": {"timeout": 9}}}, (3, 9)),
    ],
)
def test_what_is_said_by_name_counts_most_and_what_is_said_of_all_least(
    settings, options, expected
):
    configure(settings, options)
    payload = payload_of(tasks.optioned.enqueue)
    assert (payload["retry"], payload["timeout"]) == expected


def test_options_of_the_backend_are_for_tasks_that_say_nothing(settings):
    configure(settings, {"retry": 7, "result_ttl": dt.timedelta(hours=1)})
    payload = payload_of(lambda: tasks.add.enqueue(1))
    assert (payload["retry"], payload["result_ttl"], payload["track"]) == (7, 3600, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rety": 3}, "'rety', which nobody declared. Did you mean 'retry'?"),
        ({"task": {}}, "Did you mean 'tasks'?"),
        ({"retry": -1}, "retry=-1; allowed is True (25 retries), False"),
        ({"queue": "mail"}, "say queue_name of the task"),
        ({"track": True}, "tasks are always tracked"),
        ({"missing_row": "retry"}, "the arguments of a task are JSON"),
        ({"discard_on": ()}, "only a task itself can have"),
        ({"result_ttl": None}, "allowed is a number of seconds"),
        ([], "is []; allowed is a dict of options"),
        ({"tasks": []}, "['tasks'] is []; allowed is a dict of dicts"),
        ({"tasks": {ADD: {"timout": 3}}}, "Did you mean 'timeout'?"),
        ({"tasks": {ADD: 3}}, "is 3; allowed is a dict of options"),
        ({"tasks": {"tests.tasked.tasks.ad": {}}}, f"is no task. Did you mean '{ADD}'?"),
        ({"tasks": {"tests.tasked.broken.any": {}}}, "is no task."),
    ],
)
def test_wrong_options_are_errors_of_the_check(settings, options, said):
    errors = [each for each in configure(settings, options).check() if isinstance(each, Error)]
    assert [each.id for each in errors] == ["django_cogworker.E105"]
    assert said in errors[0].msg
    assert errors[0].msg.startswith("TASKS['default']['OPTIONS']")


def test_all_that_is_wrong_is_told_at_once(settings):
    """Also what a task says itself and cannot have beside `OPTIONS`, once they are sound."""
    wrong = {"rety": 3, "timeout": -1, "tasks": {ADD: {"retry": -1, "tiemout": 1}, "no.where": 3}}
    found = [each.msg for each in configure(settings, wrong).check()]
    assert len(found) == 6
    for said in ("'rety'", "timeout=-1", "retry=-1", "'tiemout'", "'no.where'] is 3", "is no task"):
        assert len([each for each in found if said in each]) == 1, said
    path = tasks.optioned.module_path
    (error,) = configure(settings, {"tasks": {path: {"at_most_once": True}}}).check()
    assert f"{path}" in error.msg
    assert "contradict each other" in error.msg


def test_wrong_options_keep_no_module_from_being_imported(settings):
    configure(settings, {"rety": 3})
    assert task(retry=3)(tasks.add.func).func is tasks.add.func


def test_wrong_options_are_an_error_of_the_call_too(settings):
    configure(settings, {"rety": 3})
    with pytest.raises(InvalidTask, match="Did you mean 'retry'"):
        tasks.add.enqueue(1)


def test_sound_options_are_no_errors(settings):
    backend = configure(
        settings,
        {"retry": 3, "tasks": {ADD: {"timeout": 9}, letters.write_letter.module_path: {}}},
    )
    assert list(backend.check()) == []


def test_queues_that_no_worker_reads_are_warned_of(settings):
    settings.COGWORKER_QUEUES = ["default", "mail"]
    settings.COGWORKER_ASYNC_QUEUES = ["io"]
    backend = configure(settings, {}, QUEUES=["default", "io", "mali", "reports"])
    (found,) = backend.check()
    assert isinstance(found, Warning)
    assert found.id == "django_cogworker.W005"
    assert "has not: mali, reports" in found.msg


def test_queue_names_that_cannot_be_are_errors(settings):
    (found,) = configure(settings, {}, QUEUES=["a b", "default"]).check()
    assert (found.id, "'a b'" in found.msg) == ("django_cogworker.E106", True)


def generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry": "often"}, "retry='often'"),
        ({"result_ttl": None}, "result_ttl=None"),
        ({"at_most_once": True, "retry": 3}, "contradict each other"),
    ],
)
def test_a_wrong_option_of_the_decorator_is_an_error_at_import(options, said):
    with pytest.raises(InvalidTask, match=said):
        task(**options)(tasks.add.func)


def test_unknown_options_of_the_decorator_are_named():
    wrong: Any = {"rety": 3}
    with pytest.raises(TypeError, match="no option 'rety'"):
        task(**wrong)(tasks.add.func)
    wrong = {"missing_row": "retry"}
    with pytest.raises(TypeError, match="'missing_row': say nothing: the arguments of a task are"):
        task(**wrong)(tasks.add.func)


def test_a_generator_is_no_task():
    with pytest.raises(InvalidTask, match="is a generator"):
        task(generator)


def test_where_the_backend_is_another_one_our_options_are_left_away(settings):
    package = task_backends.__class__.__module__
    settings.TASKS = {"default": {"BACKEND": f"{package}.backends.dummy.DummyBackend"}}
    made = task(retry=3)(tasks.add.func)
    assert not isinstance(made, CogworkerTask)
    made.enqueue(1)


def outside() -> None: ...


@pytest.mark.parametrize("module", [__name__, "__main__"])
def test_a_task_that_no_worker_would_find_is_refused_at_the_call(monkeypatch, module):
    """It is of this very file, which no app brings along; test modes run it here, so they take it."""
    monkeypatch.setattr(outside, "__module__", module)
    made = task(outside)
    with fake():
        made.enqueue()
    with disabled(), pytest.raises(InvalidTask, match="into the tasks.py of an installed app"):
        made.enqueue()


@pytest.mark.parametrize(("module", "is_found"), [(__name__, True), ("__main__", False)])
def test_what_is_made_while_django_is_set_up_is_there_in_every_process(
    monkeypatch, module, is_found
):
    monkeypatch.setattr(outside, "__module__", module)
    monkeypatch.setattr(definitions, "set_up_with", set())
    monkeypatch.setattr(loading, "set_up_with", definitions.set_up_with)
    monkeypatch.setattr(apps, "ready", False)
    registry._definitions.pop(f"{module}.outside", None)
    made = task(outside)
    monkeypatch.setattr(apps, "ready", True)
    assert loading.workers_find(made) is is_found
