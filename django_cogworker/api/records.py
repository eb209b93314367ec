"""A job as it lies in Redis, and what can be read from it.

The exact bytes are its identity: every action names them, so that what somebody else has moved or changed in the
meantime is left alone. What cannot be read as a job is shown, too, under a name of its own, and can be
deleted only.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any, Literal

from django_cogworker.exceptions import UnparseablePayload
from django_cogworker.jobs.masking import masked_text, visible_arguments, visible_payload
from django_cogworker.jobs.options import retries_allowed
from django_cogworker.payload.arguments import unpack
from django_cogworker.payload.codec import decode, queue_of
from django_cogworker.payload.display import arguments_text, shown
from django_cogworker.payload.failure import failures
from django_cogworker.payload.job import priority_of
from django_cogworker.payload.unparseable import CLASS as UNPARSEABLE

Place = Literal["queue", "schedule", "retry", "dead", "worker"]

#: Begins the name that stands for the jid of what has none.
PSEUDO = "raw-"


def pseudo_jid(raw: bytes) -> str:
    """What stands for the jid of these bytes: the same at each look."""
    return f"{PSEUDO}{hashlib.sha1(raw, usedforsecurity=False).hexdigest()[:20]}"


@dataclasses.dataclass(frozen=True, eq=False)
class JobRecord:
    """A job that waits on a queue or is held by a worker.

    `raw`: the bytes that lie there; `item`: the payload as a dict, empty where it is none, and then `problem` says
    why. `place`: where it lies. `on`: the queue that it lies on or was fetched from. `key` and `far` are for
    actions: the key in Redis, and how far from the end of a list it was seen; `score` is that of its sorted set.
    """

    raw: bytes
    place: Place
    key: str
    item: dict[str, Any]
    problem: str = ""
    on: str = ""
    far: int = -1
    score: float | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job_class} {self.jid} in {self.place}>"

    @property
    def unparseable(self) -> bool:
        """Whether it is no job, or a wrapper of what was none: it can only be deleted."""
        return bool(self.problem) or self.item.get("class") == UNPARSEABLE

    @functools.cached_property
    def jid(self) -> str:
        """Its jid; of what is no job a text that stands for it."""
        return pseudo_jid(self.raw) if self.problem else shown(str(self.item["jid"]))

    @property
    def job_class(self) -> str:
        """The name of the job class, or `(unparseable)`."""
        return UNPARSEABLE if self.problem else shown(self.item["class"])

    @property
    def queue(self) -> str:
        """The queue that it lies on, or goes to; empty where it names none."""
        return self.on or queue_of(self.item)

    @property
    def args(self) -> list[Any]:
        """Positional arguments as the job gets them. One that cannot be turned back stays in wire form."""
        return [_unpacked(each) for each in self.item.get("args", [])]

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments, in the same way."""
        return {name: _unpacked(each) for name, each in self.item.get("kwargs", {}).items()}

    @functools.cached_property
    def arguments(self) -> str:
        """All arguments as one line of text; of what is no job the text that lies there."""
        if self.problem:
            return self.raw.decode("utf-8", "backslashreplace")
        if self.unparseable:
            return shown(str(self.item.get("raw_payload", "")))
        return arguments_text(self.item.get("args", []), self.item.get("kwargs"))

    @functools.cached_property
    def visible_arguments(self) -> str:
        """The same as it may be shown to people: sensitive values are masked."""
        if self.unparseable:
            return shown(str(visible_payload({"raw_payload": self.arguments})["raw_payload"]))
        return arguments_text(*visible_arguments(self.item))

    @property
    def created_at(self) -> float | None:
        """Epoch seconds, as all times here; `None` where it is not known."""
        return self._moment("created_at")

    @property
    def enqueued_at(self) -> float | None:
        """When it was put on its queue."""
        return self._moment("enqueued_at")

    @property
    def failed_at(self) -> float | None:
        """When it failed first."""
        return self._moment("failed_at")

    @property
    def retried_at(self) -> float | None:
        """When somebody had it run again the last time."""
        return self._moment("retried_at")

    @property
    def error_class(self) -> str:
        """Of the last failure; empty where there was none."""
        return UnparseablePayload.__qualname__ if self.problem else self._text("error_class")

    @property
    def error_message(self) -> str:
        return self.problem or self._text("error_message")

    def masked(self, text: str) -> str:
        """A text about this job without the values of its arguments that are masked, as far as they are found in it."""
        return masked_text(text, self.item)

    @functools.cached_property
    def visible_error(self) -> str:
        """The message of the last failure as it may be shown to people."""
        return self.masked(self.error_message)

    @property
    def failures(self) -> int:
        """Failed attempts so far."""
        return failures(self.item)

    @property
    def attempt(self) -> int:
        """The attempt that it waits for or is in; of a dead job the last one."""
        return max(1, self.failures + (self.place != "dead"))

    @property
    def max_attempts(self) -> int:
        """So many attempts it has at the most, unless somebody gives it more."""
        return retries_allowed(self.item.get("retry")) + 1

    @property
    def priority(self) -> int:
        return priority_of(self.item)

    @property
    def tags(self) -> list[str]:
        tags = self.item.get("tags")
        return (
            [shown(each) for each in tags if isinstance(each, str)]
            if isinstance(tags, list)
            else []
        )

    @property
    def handle(self) -> str:
        """A short text by which `get` of its set or queue finds it again: where it lies, and a digest of its bytes."""
        where = str(self.far) if self.score is None else repr(self.score)
        return f"{where}~{hashlib.sha1(self.raw, usedforsecurity=False).hexdigest()[:16]}"

    @property
    def label(self) -> str:
        """`worker`, `retry`, `schedule`, `dead` or `queue:<name>`."""
        return f"queue:{self.on}" if self.place == "queue" else self.place

    @property
    def seen(self) -> str:
        """A short text by which `seek` finds it again at once, wherever that is; not for what a worker has."""
        return f"{self.label}/{self.handle}"

    def _moment(self, field: str) -> float | None:
        value = self.item.get(field)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e12:
            return None
        return float(value)

    def _text(self, field: str) -> str:
        value = self.item.get(field)
        return shown(value) if isinstance(value, str) else ""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SortedEntry(JobRecord):
    """A job in a set. `at`: when it is due, or when it died."""

    @property
    def at(self) -> float:
        return self.score or 0.0


def fields_of(raw: bytes) -> tuple[dict[str, Any], str]:
    """The payload in these bytes, and why there is none."""
    try:
        return decode(raw), ""
    except UnparseablePayload as error:
        return {}, str(error)


def _unpacked(packed: Any) -> Any:
    try:
        return unpack(packed)
    except Exception:
        return packed  # an unknown tag, or one with a value that it cannot have
