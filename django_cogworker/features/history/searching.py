"""Looking through the runs that are kept, for a limited time, with a cursor to go on.

Which runs are looked at, and in which order, says `walking`; here are those that match put together.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Iterator

from django_cogworker.features.history.records import HistoryEntry, read
from django_cogworker.features.history.walking import ALWAYS, Place, Span, Walk
from django_cogworker.features.history.writing import FAILED, SUCCESS, Status

#: Runs of each kind read at first where something is looked for.
CHUNK = 500
#: A text that JSON writes as it is.
_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]+")


@dataclasses.dataclass(frozen=True, slots=True)
class HistorySlice:
    """Some runs that match. `cursor` goes on after them, `None` where nothing is left. `looked_at`: so many runs
    were looked at for this; `total`: so many are kept of the status and the time that were asked for.
    """

    entries: list[HistoryEntry]
    cursor: str | None
    looked_at: int
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a run has to be like. An empty text asks for nothing. `span`: when it ended."""

    status: Status | None = None
    job_class: str = ""
    queue: str = ""
    jid: str = ""
    text: str = ""
    span: Span = ALWAYS

    @property
    def kinds(self) -> tuple[Status, ...]:
        return (SUCCESS, FAILED) if self.status is None else (self.status,)

    @property
    def is_narrow(self) -> bool:
        """Whether a run has to be looked at to know if it matches."""
        return bool(self.job_class or self.queue or self.jid or self.text)

    def marks(self) -> Iterator[bytes]:
        """What the bytes of a record that matches contain: most are put aside without being decoded."""
        for name in ("class", "queue"):
            value = self.job_class if name == "class" else self.queue
            if value:
                yield f'"{name}":{json.dumps(value)}'.lower().encode()
        if self.jid:
            yield json.dumps(self.jid).lower().encode()
        if _PLAIN.fullmatch(self.text):
            yield self.text.lower().encode()

    def fits(self, run: HistoryEntry) -> bool:
        for asked, own in (
            (self.job_class, run.job_class),
            (self.queue, run.queue),
            (self.jid, run.jid),
        ):
            if asked not in ("", own):
                return False
        return not self.text or self.text.casefold() in _words(run).casefold()


def search(
    wanted: Wanted, oldest_first: bool, cursor: str | None, limit: int, budget: float
) -> HistorySlice:
    """One search; see `History.search`."""
    place = Place.after(cursor, wanted.span, oldest_first)
    # One more than fits on the page tells whether anything is left.
    chunk = CHUNK if wanted.is_narrow else limit + 1
    deadline = time.monotonic() + budget
    walk = Walk(wanted.kinds, wanted.span, place, chunk, deadline, oldest_first=oldest_first)
    found: list[HistoryEntry] = []
    looked_at = 0
    for kind, member, moment in matching(walk, wanted):
        if len(found) == limit:
            return HistorySlice(found, str(place), looked_at, walk.total)
        looked_at += 1
        place.passed(kind, moment)
        run = None if member is None else read(kind, member, moment)
        if run is not None and wanted.fits(run):
            found.append(run)
    return HistorySlice(found, None if walk.ended else str(place), looked_at, walk.total)


def matching(walk: Walk, wanted: Wanted) -> Iterator[tuple[Status, bytes | None, float]]:
    """All runs of a walk; `None` in place of the bytes of those that cannot match."""
    marks = tuple(wanted.marks())
    for kind, member, moment in walk:
        lower = member.lower() if marks else b""
        yield kind, member if all(mark in lower for mark in marks) else None, moment


def _words(run: HistoryEntry) -> str:
    args = run.args_cut or json.dumps([run.args, run.kwargs or {}], ensure_ascii=False)
    parts = (run.job_class, run.queue, run.jid, args, run.error_class, run.error_message)
    return "\n".join(each for each in parts if each)
