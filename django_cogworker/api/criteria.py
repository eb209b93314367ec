"""What a search asks for, and whether a job answers to it.

Texts are compared without regard to case, as parts of what is shown. Before a job is decoded its bytes are looked at: a
word that is asked for must stand in them. Words are what JSON and the text for people write alike, so nothing
is missed; only a writer that escapes plain letters would be.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Self

from django_cogworker.api.records import PSEUDO, JobRecord, pseudo_jid
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.payload.unparseable import CLASS as UNPARSEABLE

_WORD = re.compile(r"[A-Za-z0-9_.:@-]+")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """All that are given must hold.

    Parts of a text: `job_class`, `arguments`, `jid`, `error` (class or message), and `anything` (any of these, the
    queue or a tag). Whole: `job_name` (a job class or its name), `queue`, `tag`, `error_group`.

    `masked`: arguments and errors are compared as they are shown to people, so that whoever sees `***` finds nothing
    out by trying.
    """

    job_class: str = ""
    job_name: str = ""
    arguments: str = ""
    jid: str = ""
    error: str = ""
    queue: str = ""
    tag: str = ""
    error_group: str = ""
    anything: str = ""
    masked: bool = False

    def __post_init__(self) -> None:
        named: Any = self.job_name
        if not isinstance(named, str):
            object.__setattr__(self, "job_name", getattr(named, "job_name", None))
        for name, value in self._all().items():
            if not isinstance(value, bool if name == "masked" else str):
                what = "true or false" if name == "masked" else "a text"
                raise InvalidQuery(f"{name} is {value!r}; it takes {what}.")

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.texts())

    def _all(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def as_dict(self) -> dict[str, Any]:
        """What is asked for, and how, as JSON can hold it."""
        return {name: value for name, value in self._all().items() if value}

    def texts(self) -> dict[str, str]:
        """What is asked for."""
        return {name: value for name, value in self.as_dict().items() if name != "masked"}

    @classmethod
    def of(cls, given: Criteria | None, fields: Mapping[str, Any]) -> Criteria:
        """Criteria from either form. Raises `InvalidQuery`."""
        if given is not None and fields:
            raise InvalidQuery("Give the criteria as one object or by name, not both.")
        return given if given is not None else cls.read(fields)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`. Raises `InvalidQuery`."""
        try:
            return cls(**fields)
        except TypeError:
            known = ", ".join(each.name for each in dataclasses.fields(cls))
            raise InvalidQuery(
                f"{sorted(fields)} are not all criteria; those are {known}."
            ) from None


class Matcher:
    """Criteria made ready for many jobs."""

    def __init__(self, criteria: Criteria, on: str = "") -> None:
        """`on`: the queue that all of them lie on, whatever they say themselves."""
        self._wanted = criteria
        self._lower = {
            name: value.lower()
            for name, value in criteria.texts().items()
            if name in ("job_class", "arguments", "jid", "error", "anything")
        }
        self._pseudo = self._lower.get("jid", "").startswith(PSEUDO)
        words = [] if self._pseudo else list(map(_longest_word, self._texts(on)))
        self._words = [each for each in words if each]

    def _texts(self, on: str) -> list[str]:
        """Those that stand in the bytes of each job that matches."""
        wanted = self._wanted.texts()
        if on:
            wanted.pop("queue", None)
            if self._lower.get("anything", "") in on.lower():
                wanted.pop("anything", None)
        # What is no job is called so by us alone, and named by us alone.
        if wanted.get("anything", "").lower().startswith(PSEUDO):
            wanted.pop("anything", None)
        for name in ("job_class", "job_name", "anything"):
            if wanted.get(name, "").lower() in UNPARSEABLE:
                wanted.pop(name, None)
        return list(wanted.values())

    def may_match(self, raw: bytes) -> bool:
        """Whether it is worth decoding."""
        if self._pseudo:
            return self._lower["jid"] in pseudo_jid(raw)
        if self._words:
            lower = raw.lower()
            for each in self._words:
                if each not in lower:
                    return False
        return True

    def matches(self, record: JobRecord) -> bool:
        wanted, lower = self._wanted, self._lower
        if wanted.job_name and record.job_class != wanted.job_name:
            return False
        if wanted.queue and record.queue != wanted.queue:
            return False
        if wanted.tag and wanted.tag not in record.tags:
            return False
        if wanted.error_group and record.item.get("error_group") != wanted.error_group:
            return False
        return all(
            _holds(_shown(name, record, wanted.masked), text) for name, text in lower.items()
        )


def _shown(name: str, record: JobRecord, masked: bool) -> list[str]:
    if name in ("job_class", "jid"):
        return [getattr(record, name)]
    arguments = [record.visible_arguments if masked else record.arguments]
    error = [record.error_class, record.visible_error if masked else record.error_message]
    if name == "anything":
        names = [record.job_class, record.jid, record.queue, *record.tags]
        return [*names, *error, *arguments]
    return error if name == "error" else arguments


def _holds(texts: list[str], part: str) -> bool:
    return any(part in each.lower() for each in texts)


def _longest_word(text: str) -> bytes:
    return max(_WORD.findall(text), key=len, default="").lower().encode()
