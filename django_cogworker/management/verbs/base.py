"""What a verb of `manage.py cogworker` is, and how it shows what it found."""

from __future__ import annotations

import json
import math
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import CommandError


class Verb:
    """One word after `manage.py cogworker`."""

    name: ClassVar[str]
    help: ClassVar[str]

    def __init__(self, write: Callable[[str], object]) -> None:
        """`write` shows a line."""
        self._write = write

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        """None, unless a verb has some."""

    def run(self, options: dict[str, Any]) -> None:
        """Do it. What cannot be done is a `CommandError`; other errors are the command's to tell."""
        raise NotImplementedError

    def confirm(self, question: str) -> None:
        """Go on only where somebody answers `yes`."""
        try:
            answer = input(f"{question} Type yes: ")
        except EOFError:
            raise CommandError(
                "Nothing was done: there is nobody to ask here; say --yes."
            ) from None
        if answer.strip() != "yes":
            raise CommandError("Nothing was done.")

    def table(self, rows: list[dict[str, Any]], as_json: bool, empty: str) -> None:
        """Show rows, or `empty` where there are none."""
        if as_json:
            self._write(json.dumps(rows))
            return
        if not rows:
            self._write(empty)
            return
        rows = [{name: _shown(value) for name, value in row.items()} for row in rows]
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        self._write("  ".join(name.upper().ljust(width) for name, width in widths.items()))
        for row in rows:
            self._write("  ".join(row[name].ljust(width) for name, width in widths.items()))


class ReadingVerb(Verb):
    """One that only looks, and can answer as JSON."""

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="As JSON.")


def seconds(text: str) -> float:
    """What an option with seconds takes: `nan` would never be over, and `inf` is no time."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def jid_in(options: dict[str, Any]) -> str:
    """The jid that was given."""
    jid: str = options["jid"]
    if not jid.strip():
        raise CommandError("No job was named: give its jid, as the pages and the log show it.")
    return jid


def moment_text(at: float) -> str:
    """A moment for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
