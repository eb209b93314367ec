"""Columns that an app adds to tables of the pages.

from django_cogworker.admin import Column, register_column

register_column("queue", Column("Team", lambda state: TEAMS.get(state.name, "")))

The page is named as in its address. The callable gets what the row is about (see the how-to) and returns text,
or HTML that is marked safe. It should ask no database or Redis: it is called for every row.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.functional import Promise

logger = logging.getLogger("django_cogworker")


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and what to show of a row."""

    heading: str | Promise
    value: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: what it is about, and the cells that apps added."""

    item: Any
    extra: list[Any]


_registered: dict[str, list[Column]] = {}


def register_column(page: str, column: Column) -> None:
    """Add a column to the main table of the page of that name, behind those that are there."""
    _registered.setdefault(page, []).append(column)


def withdraw_column(page: str, column: Column) -> None:
    """Take it out again (tests)."""
    _registered[page].remove(column)


def columns_of(page: str) -> tuple[Column, ...]:
    return tuple(_registered.get(page, ()))


def rows(page: str, items: Iterable[Any]) -> list[Row]:
    """The items as rows, with the cells of added columns."""
    columns = columns_of(page)
    return [Row(each, [_cell(column, each) for column in columns]) for each in items]


def _cell(column: Column, item: Any) -> Any:
    try:
        return column.value(item)
    except Exception:
        # Somebody else's column must not take the page away that is needed to mend things.
        logger.exception("The column %r failed for %r.", str(column.heading), item)
        return "?"
