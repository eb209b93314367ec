"""Bar charts as SVG that the server draws: no script, no style attribute, colours by class.

The drawing is for eyes alone; beside it stands a table with the same numbers, for screen readers and for
whoever wants them exactly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from django.utils.functional import Promise

Text = str | Promise

#: The drawing's own units. It is stretched to the width there is.
STEP, WIDTH, HEIGHT = 10, 8, 100


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """One kind of value: its name, and the class that colours it (`cog-ok`, `cog-bad`, `cog-plain`)."""

    label: Text
    colour: str


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One place on the axis. `label` may be HTML (a `<time>`), `plain` is the same as text; `values` has a number,
    or `None`, for each series.
    """

    label: Any
    plain: str
    values: Sequence[float | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle, in texts that no language's decimal comma has touched."""

    colour: str
    x: str
    y: str
    width: str
    height: str


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One bar as drawn: its pieces, and what it says when pointed at."""

    hint: str
    x: str
    pieces: list[Piece]


class Chart:
    """Bars in which the series are stacked. `show` makes a text of a value.

    With `nested` each series is the end of the one before, such as percentiles: a bar is as high as its highest value.
    """

    def __init__(
        self,
        title: Text,
        axis: Text,
        series: Sequence[Series],
        bars: Sequence[Bar],
        show: Callable[[Any], str],
        *,
        nested: bool = False,
    ) -> None:
        self.title = title
        self.axis = axis
        self.series = series
        self.bars = bars
        self.show = show
        self.nested = nested
        self.most = max((self._sum(each) for each in bars), default=0.0)

    @property
    def is_empty(self) -> bool:
        return self.most <= 0

    @property
    def top(self) -> str:
        """The value at the upper edge."""
        return self.show(self.most)

    @property
    def view_box(self) -> str:
        return f"0 0 {max(1, len(self.bars)) * STEP} {HEIGHT}"

    @property
    def column_width(self) -> str:
        return str(STEP)

    @property
    def first(self) -> Any:
        return self.bars[0].label if self.bars else ""

    @property
    def last(self) -> Any:
        return self.bars[-1].label if self.bars else ""

    def rows(self) -> list[tuple[Any, list[str]]]:
        """The table: label and values as texts."""
        return [(each.label, [self.show(value) for value in each.values]) for each in self.bars]

    def columns(self) -> list[Column]:
        return [self._column(at, each) for at, each in enumerate(self.bars)]

    def _column(self, at: int, bar: Bar) -> Column:
        pieces, above = [], 0.0
        for series, value in zip(self.series, bar.values, strict=True):
            height = HEIGHT * (value or 0) / self.most if self.most else 0.0
            if self.nested:
                height = max(0.0, height - above)
            if height:
                height = max(height, 1.0)  # a single failure among a million is to be seen
                above = min(HEIGHT, above + height)
                x = str(at * STEP + (STEP - WIDTH) // 2)
                pieces.append(
                    Piece(series.colour, x, f"{HEIGHT - above:.2f}", str(WIDTH), f"{height:.2f}")
                )
        told = ", ".join(
            f"{series.label}: {self.show(value)}"
            for series, value in zip(self.series, bar.values, strict=True)
        )
        return Column(f"{bar.plain}: {told}", str(at * STEP), pieces)

    def _sum(self, bar: Bar) -> float:
        values = [value or 0 for value in bar.values]
        return max(values, default=0) if self.nested else sum(values)
