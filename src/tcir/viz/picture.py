"""Pictures as data: grids of labelled cells and a legend; `svg` and `text` render them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .palette import EMPTY

MARKS = {"": "", "hatch": "/", "cross": "x", "ring": "*"}
"""Marks of special cells, and the character for each in terminal text."""


@dataclass(frozen=True)
class Cell:
    """A cell: ``lines`` of text on ``fill``; ``mark`` is one of `MARKS`; ``about`` is shown on
    hover."""

    lines: tuple[str, ...] = ()
    fill: str = EMPTY
    mark: str = ""
    about: str = ""


BLANK = Cell(fill="")
"""An empty place of a grid, without a cell."""


@dataclass(frozen=True)
class Grid:
    """Rows of cells. ``gaps``: numbers of rows and of columns after which a space is drawn (0:
    never).
    """

    rows: list[list[Cell]]
    row_labels: list[str]
    column_labels: list[str]
    title: str = ""
    row_axis: str = ""
    column_axis: str = ""
    caption: str = ""
    gaps: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Bar:
    """An interval from `start` to `end`. ``text`` is written in the bar if there is room; terminal
    text shows its first letter.
    """

    start: float
    end: float
    text: str
    fill: str
    mark: str = ""
    about: str = ""


@dataclass(frozen=True)
class BarRow:
    """A row of bars that do not overlap. thin: whether the row has half the height, for less
    important bars.
    """

    label: str
    bars: list[Bar]
    thin: bool = False


@dataclass(frozen=True)
class Arrow:
    """An arrow from a row at one time to a row at another."""

    source: int
    start: float
    sink: int
    end: float


@dataclass(frozen=True)
class Chart:
    """A chart: rows of bars over one common axis, from `start` to `end`."""

    rows: list[BarRow]
    arrows: list[Arrow]
    start: float
    end: float
    axis: str
    title: str = ""


@dataclass(frozen=True)
class Key:
    """One entry of the legend."""

    fill: str
    text: str
    mark: str = ""


@dataclass(frozen=True)
class Picture:
    """Grids and charts, one below the other, with a title, a description, a legend and a table of
    text."""

    title: str
    about: str
    grids: list[Grid]
    legend: list[Key]
    table: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
