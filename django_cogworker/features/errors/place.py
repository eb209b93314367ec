"""Where an error was raised: the deepest frame that belongs to the project.

Not the standard library, nor what is installed beside it, nor this package. A project may be installed itself,
so next come frames of the package that the job is of. If there is none either, it is the last frame.
"""

from __future__ import annotations

import os
import site
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from django_cogworker.payload.failure import clean

MAX_WHERE = 200
MAX_LINE = 300

_INSTALLED = frozenset(("site-packages", "dist-packages"))
_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"


class Place(NamedTuple):
    """`where`: module and function, the same on every host. `line`: file and line, to be shown."""

    where: str = ""
    line: str = ""


@lru_cache(1)
def _libraries() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {each for name, each in sysconfig.get_paths().items() if name in names}
    paths |= {os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages()}
    return tuple({f"{form(each)}{os.sep}" for each in paths for form in (str, os.path.realpath)})


@lru_cache(4096)
def _kind(file: str) -> str:
    """`ours`, `project`, or `library`, which code without a file is too."""
    if file.startswith("<"):
        return "library"
    path = os.path.abspath(file)
    if path.startswith(_OURS) or os.path.realpath(path).startswith(_OURS):
        return "ours"
    if path.startswith(_libraries()) or not _INSTALLED.isdisjoint(Path(path).parts):
        return "library"
    return "project"


def place_of(error: BaseException, job_class: str) -> Place:
    """The place of an error that was raised; empty where it has no traceback."""
    package = job_class.partition(".")[0]
    project = own = last = None
    step = error.__traceback__
    while step is not None:
        last = step.tb_frame, step.tb_lineno
        kind = _kind(step.tb_frame.f_code.co_filename)
        if kind == "project":
            project = last
        elif kind == "library" and _module(step.tb_frame).partition(".")[0] == package:
            own = last
        step = step.tb_next
    found = project or own or last
    return Place() if found is None else _place(*found)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _place(frame: FrameType, line: int | None) -> Place:
    code = frame.f_code
    where = f"{_module(frame)}.{code.co_qualname}"
    return Place(
        clean(where, MAX_WHERE), clean(f"{code.co_filename[-MAX_LINE + 10 :]}:{line}", MAX_LINE)
    )
