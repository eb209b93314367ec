"""Tracebacks as the pages show them: whose frames are in sight, and that nothing is lost."""

from __future__ import annotations

import textwrap
import traceback

import pytest

from django_cogworker.display.tracebacks import folded

SITE = "/venv/lib/python3.13/site-packages"
STD = "/usr/lib/python3.13"


def frame(path: str, function: str = "f", line: int = 1) -> str:
    return f'  File "{path}", line {line}, in {function}\n    do_{function}()\n    ~~~~^^\n'


def block(*paths: str, error: str = "ValueError: no") -> str:
    frames = "".join(frame(path, f"f{at}") for at, path in enumerate(paths))
    return f"Traceback (most recent call last):\n{frames}{error}\n"


WAY = [f"{SITE}/django_cogworker/worker/runner.py", f"{SITE}/django_cogworker/jobs/base.py"]
OTHER = [f"{SITE}/requests/{name}.py" for name in ("api", "sessions", "adapters", "retry")]


def functions(text: str) -> list[str]:
    return [each.split(" in ")[1] for each in text.splitlines() if '  File "' in each]


def test_the_way_to_the_job_is_folded_and_its_own_frames_are_not():
    found = folded(block(*WAY, f"{SITE}/asgiref/sync.py", "/srv/shop/jobs.py", "/srv/shop/x.py"))
    assert functions(found.text) == ["f3", "f4"]
    assert found.hidden == 3
    lines = found.text.splitlines()
    assert lines[:2] == [
        "Traceback (most recent call last):",
        "  … 3 frames of django_cogworker, asgiref",
    ]
    assert lines[2:5] == frame("/srv/shop/jobs.py", "f3").splitlines()
    assert lines[-1] == "ValueError: no"
    assert functions(found.whole) == ["f0", "f1", "f2", "f3", "f4"]


def test_of_other_packages_the_first_is_shown_and_the_last_where_it_went_wrong():
    raised = folded(block("/srv/shop/jobs.py", *OTHER))
    assert functions(raised.text) == ["f0", "f1", "f4"]
    assert "  … 2 frames of requests" in raised.text
    through = folded(block("/srv/shop/jobs.py", *OTHER, f"{STD}/json/x.py", "/srv/shop/hooks.py"))
    assert functions(through.text) == ["f0", "f1", "f6"]
    assert "  … 4 frames of requests, Python" in through.text


def test_a_few_frames_of_others_are_not_folded():
    text = block("/srv/shop/jobs.py", *OTHER[:3])
    assert (folded(text).text, folded(text).hidden) == (text, 0)


def test_where_all_frames_are_ours_the_last_one_is_seen():
    assert functions(folded(block(*WAY, WAY[0])).text) == ["f2"]


def test_each_of_chained_errors_is_folded_for_itself():
    text = block(*WAY, "/srv/a.py") + "\nDuring handling …\n\n" + block(*WAY, "/srv/b.py")
    found = folded(text)
    assert functions(found.text) == ["f2", "f2"]
    assert found.hidden == 4
    assert "During handling …" in found.text


def test_windows_paths_count_too():
    ours = r"C:\venv\Lib\site-packages\django_cogworker\worker\runner.py"
    assert functions(folded(block(ours, r"C:\shop\jobs.py")).text) == ["f1"]


@pytest.mark.parametrize("text", ["", "no traceback", '  File "x"', "Traceback: <frame 1>\n  x"])
def test_what_is_no_traceback_stays_as_it_is(text):
    assert folded(text).text == folded(text).whole == text


def test_groups_of_errors_and_repeated_lines_keep_their_shape():
    def endless() -> None:
        endless()

    try:
        try:
            endless()
        except RecursionError as error:
            raise ExceptionGroup("many", [error, ValueError("two")]) from None
    except ExceptionGroup as group:
        text = "".join(traceback.format_exception(group))
    assert "[Previous line repeated" in text
    assert folded(text).text == text
    grouped = textwrap.indent(block(*WAY, "/srv/a.py"), "    | ")
    found = folded(grouped)
    assert functions(found.text) == ["f2"]
    assert "    |   … 2 frames of django_cogworker" in found.text
