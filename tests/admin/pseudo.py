"""A language in which everything is marked: `⟦Retry⟧`. What stands outside the marks on a page was never marked for
translation, or is data.

Placeholders stand outside the marks, so that what is put into a sentence has to be data or marked itself.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import django
from django.utils.translation import to_locale

from tools import catalogue, messages

LANGUAGE = "xx"
#: What else Django itself says on our pages.
THEIRS = ("contrib/admin", "contrib/auth")
#: Attributes that people see or hear.
SAID: tuple[str, ...] = (
    "aria-label",
    "title",
    "placeholder",
    "alt",
    "data-cog-late",
    "data-cog-pause",
)
SAID += ("data-cog-resume", "data-cog-ended", "data-cog-finished")
#: Elements with what machines or programmers wrote.
DATA = ("script", "style", "code", "pre", "time")
#: Elements without an end.
VOID = ("input", "link", "meta", "br", "img", "hr", "path", "use", "rect", "base")


def marked(text: str) -> str:
    if text == "yes,no,maybe":
        return "⟦yes⟧,⟦no⟧,⟦maybe⟧"
    return f"⟦{catalogue.PLACEHOLDER.sub(_outside, text)}⟧"


def _outside(found: object) -> str:
    name = str(found[0])  # type: ignore[index]
    return name if name == "%%" else f"⟧{name}⟦"


def make(folder: Path) -> Path:
    """A folder for `LOCALE_PATHS`, made of what the code and Django say now."""
    root = Path(django.__file__).parent
    sources = [messages.extract(folder / "code")]
    sources += [root / each / "locale" / "en" / "LC_MESSAGES" / "django.po" for each in THEIRS]
    sources.append(root / "conf" / "locale" / "en" / "LC_MESSAGES" / "django.po")
    entries = {each.key: each for path in sources for each in catalogue.read(path).entries}
    made = folder / "locale" / to_locale(LANGUAGE) / "LC_MESSAGES" / "django.po"
    made.parent.mkdir(parents=True)
    head = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
    lines = [f'msgid ""\nmsgstr {catalogue.quoted(head)}\n']
    for context, text, plural in entries:
        if context:
            lines.append(f"msgctxt {catalogue.quoted(context)}")
        lines.append(f"msgid {catalogue.quoted(text)}")
        if plural:
            lines.append(f"msgid_plural {catalogue.quoted(plural)}")
            lines.append(f"msgstr[0] {catalogue.quoted(marked(text))}")
            lines.append(f"msgstr[1] {catalogue.quoted(marked(plural))}\n")
        else:
            lines.append(f"msgstr {catalogue.quoted(marked(text))}\n")
    made.write_text("\n".join(lines), encoding="utf-8")
    messages.compile_one(made, made.with_suffix(".mo"))
    return folder / "locale"


class Unmarked(HTMLParser):
    """The words of a page that stand outside the marks. `marks`: how many were found at all."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.marks = text.count("⟦")
        self._deep, self._data = 0, 0
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._deep == 0, "a mark is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        button = tag == "input" and given.get("type") in ("submit", "button", "reset")
        for name, value in attrs:
            # The title of a span is the message of an error, which is in no language of ours.
            said = name in SAID and (tag, name) != ("span", "title")
            if value and (said or (button and name == "value")):
                kept, _ = _outside_marks(value, 0)
                self.words += kept.split()
        if tag not in VOID:
            self._open.append(tag)
            self._data += tag in DATA

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self._open and self._open[-1] == tag:
            self._open.pop()
            self._data -= tag in DATA

    def handle_data(self, data: str) -> None:
        kept, self._deep = _outside_marks(data, self._deep)
        if not self._data:
            self.words += kept.split()


def _outside_marks(text: str, deep: int) -> tuple[str, int]:
    kept = []
    for each in text:
        if each == "⟦":
            deep += 1
        elif each == "⟧":
            deep -= 1
        elif not deep:
            kept.append(each)
            continue
        kept.append(" ")
    return "".join(kept), deep


def words(text: str) -> Iterator[str]:
    """Those of a page that have letters and no digits, without punctuation around them."""
    for each in Unmarked(text).words:
        word = each.strip(f"{string.punctuation}“”·×–…≥")  # noqa: RUF001
        if any(map(str.isalpha, word)) and not any(map(str.isdigit, word)):
            yield word
