"""Tracebacks and stacks as people want to read them: the frames of the project in sight, those around them folded.

The frames that lead to a job's code are always the same: ours, asgiref's, those of threads and event loops. They are
folded wherever they are. So are long runs of frames of other packages, but for the first, which says what the project
called, and the last of all, where it went wrong. Tracebacks come from other machines, so a path alone tells whose
a frame is. What does not look like a frame stays as it is; nothing is lost, since whoever shows this shows the whole,
too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from django.utils.translation import ngettext

Kind = Literal["way", "library", "project"]

#: So many frames of other packages in a row are not folded.
FEW = 3

_FRAME = re.compile(r'(?P<lead>[ |+-]*)  File "(?P<path>[^"\n]+)", line \d+, in ')
#: The way to a job's code.
_WAY = re.compile(
    r"[/\\](?:django_cogworker[/\\](?:worker|jobs|features|client|management)|asgiref|concurrent[/\\]futures|asyncio)[/\\]"
    r"|[/\\]threading\.py$|^<frozen "
)
_PACKAGE = re.compile(r"[/\\](?:site|dist)-packages[/\\](?P<name>[^/\\]+)")
_STANDARD = re.compile(r"[/\\][Ll]ib(?:64)?[/\\]python[\d.t]+[/\\]|[/\\]Lib[/\\]")
_OWN = re.compile(r"[/\\](django_cogworker|asgiref)[/\\]")


@dataclasses.dataclass(frozen=True, slots=True)
class Folded:
    """`text`: what is to be seen; `hidden`: so many frames are not in it; `whole`: all of it."""

    text: str
    hidden: int
    whole: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Frame:
    lead: str
    path: str
    lines: list[str]

    @property
    def kind(self) -> Kind:
        if _WAY.search(self.path):
            return "way"
        known = _PACKAGE.search(self.path) or _STANDARD.search(self.path)
        return "library" if known else "project"

    @property
    def name(self) -> str:
        """Of the package that it is of."""
        own, package = _OWN.search(self.path), _PACKAGE.search(self.path)
        if own:
            return own[1]
        return package["name"].removesuffix(".py") if package else "Python"


def folded(text: str) -> Folded:
    """The traceback, or the stack, for reading."""
    shown: list[str] = []
    hidden = 0
    row: list[_Frame] = []
    for each in _parts(text.splitlines()):
        if isinstance(each, _Frame):
            row.append(each)
            continue
        hidden += _fold(row, shown)
        row = []
        shown.append(each)
    hidden += _fold(row, shown)
    return Folded("\n".join(shown) if hidden else text, hidden, text)


def _parts(lines: Sequence[str]) -> Iterator[_Frame | str]:
    """Frames, and lines that belong to none."""
    frame: _Frame | None = None
    for line in lines:
        begins = _FRAME.match(line)
        if begins:
            if frame is not None:
                yield frame
            frame = _Frame(begins["lead"], begins["path"], [line])
        elif frame is not None and _belongs(line, frame.lead):
            frame.lines.append(line)
        else:
            if frame is not None:
                yield frame
                frame = None
            yield line
    if frame is not None:
        yield frame


def _belongs(line: str, lead: str) -> bool:
    return line.startswith((f"{lead}    ", f"{lead}  [Previous line repeated"))


def _fold(row: Sequence[_Frame], shown: list[str]) -> int:
    """Show what is to be seen of frames that follow each other; how many are not."""
    hidden, at = 0, 0
    while at < len(row):
        kind, end = row[at].kind, at
        while end < len(row) and row[end].kind == kind:
            end += 1
        first, last = at, end
        if kind == "project" or (kind == "library" and end - at <= FEW):
            last = first  # nothing is folded
        elif kind == "library":
            first += 1
        if end == len(row) and last > first:
            last -= 1
        for each in row[at:first]:
            shown += each.lines
        if last > first:
            shown.append(_said(row[first:last]))
            hidden += last - first
        for each in row[last:end]:
            shown += each.lines
        at = end
    return hidden


def _said(frames: Sequence[_Frame]) -> str:
    names = ", ".join(dict.fromkeys(each.name for each in frames))
    text = ngettext(
        "… %(number)d frame of %(names)s", "… %(number)d frames of %(names)s", len(frames)
    )
    return f"{frames[0].lead}  {text % {'number': len(frames), 'names': names}}"
