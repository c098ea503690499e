"""Pictures as data: grids of labelled cells and a legend; `svg` and `text` render them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .palette import EMPTY

MARKS = {"": "", "hatch": "/", "cross": "x", "ring": "*"}
"""Marks of special cells, and the character for each in terminal text."""


@dataclass(frozen=True)
class Cell:
    """``lines`` of text on ``fill``; ``mark`` is one of `MARKS`; ``about`` is shown on hover."""

    lines: tuple[str, ...] = ()
    fill: str = EMPTY
    mark: str = ""
    about: str = ""


BLANK = Cell(fill="")
"""No cell: an empty place of a grid."""


@dataclass(frozen=True)
class Grid:
    """Rows of cells. ``gaps``: a space after every so many rows and columns (0: never)."""

    rows: list[list[Cell]]
    row_labels: list[str]
    column_labels: list[str]
    title: str = ""
    row_axis: str = ""
    column_axis: str = ""
    caption: str = ""
    gaps: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Key:
    """One entry of the legend."""

    fill: str
    text: str
    mark: str = ""


@dataclass(frozen=True)
class Picture:
    """Grids, one below the other, with a title, a description, a legend and a table of text."""

    title: str
    about: str
    grids: list[Grid]
    legend: list[Key]
    table: list[str] = field(default_factory=list)
