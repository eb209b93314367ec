"""Catalogues of translations (`.po`) as gettext's tools write them, read without anything but Python."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

#: `%(name)s`, `%%` and `{name}`: what a translation must have as its original has it.
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|\{\w+\}")

Key = tuple[str, str, str]


@dataclasses.dataclass(slots=True)
class Entry:
    """One message: context, text, its plural, and the translations, several where there is a plural."""

    context: str = ""
    text: str = ""
    plural: str = ""
    translations: dict[int, str] = dataclasses.field(default_factory=dict)
    flags: set[str] = dataclasses.field(default_factory=set)
    line: int = 0

    @property
    def key(self) -> Key:
        return self.context, self.text, self.plural


@dataclasses.dataclass(slots=True)
class Catalogue:
    """What a file has. `obsolete`: how many lines of messages that nobody says any more."""

    header: str
    entries: list[Entry]
    obsolete: int

    @property
    def plurals(self) -> int:
        """How many forms the language has."""
        found = re.search(r"nplurals=(\d+)", self.header)
        return int(found[1]) if found else 0


def read(path: Path) -> Catalogue:
    """Raises `ValueError` where the file is no catalogue."""
    found = [each for each in _entries(path) if each.text or each.translations]
    header = found.pop(0).translations.get(0, "") if found and not found[0].text else ""
    lines = path.read_text(encoding="utf-8").splitlines()
    return Catalogue(header, found, sum(each.startswith("#~") for each in lines))


def _entries(path: Path) -> Iterator[Entry]:
    entry, last = Entry(), ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#~"):
            continue
        if line.startswith("#,"):
            entry.flags |= {each.strip() for each in line[2:].split(",")}
        if not line.strip():
            yield entry
            entry, last = Entry(), ""
        if not line.strip() or line.startswith("#"):
            continue
        name, text = ("", line) if line.startswith('"') else line.split(" ", 1)
        last = name or last
        _add(entry, last, str(ast.literal_eval(text)))
        entry.line = entry.line or number
    yield entry


def _add(entry: Entry, name: str, text: str) -> None:
    if name == "msgctxt":
        entry.context += text
    elif name == "msgid":
        entry.text += text
    elif name == "msgid_plural":
        entry.plural += text
    elif name.startswith("msgstr"):
        at = int(name[7:-1]) if "[" in name else 0
        entry.translations[at] = entry.translations.get(at, "") + text
    else:
        raise ValueError(f"{name!r} is nothing that a catalogue has.")


def quoted(text: str) -> str:
    """As a `.po` has it, on one line."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def placeholders(text: str) -> list[str]:
    """In order of the alphabet."""
    return sorted(PLACEHOLDER.findall(text))
