"""Pictures as Typst documents: grids become tables, charts become images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .palette import ink_on
from .picture import BLANK, MARKS, Cell, Chart, Grid, Key, Picture
from .svg import svg

GUTTER = "6pt"
"""Space between groups of rows or columns."""
_START = """\
#set page(width: auto, height: auto, margin: 12pt)
#set text(font: "DejaVu Sans Mono", size: 8pt)
"""


def _string(words: str) -> str:
    """Formats a string literal of Typst code, in which nothing is markup."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _content(lines: Sequence[str]) -> str:
    return "[" + " \\ ".join(f"#{_string(line)}" for line in lines) + "]"


def _colour(fill: str) -> str:
    return f'rgb("{fill}")' if fill else "none"


def _cell(cell: Cell) -> str:
    if cell is BLANK:
        return "table.cell(stroke: none)[]"
    lines = [*cell.lines] or [""]
    lines[-1] += MARKS[cell.mark]
    words = f"text(fill: {_colour(ink_on(cell.fill))}, {_content(lines)})"
    return f"table.cell(fill: {_colour(cell.fill)}, {words})"


def _gutter(count: int, group: int, labels: bool) -> str:
    """Formats the spaces after every `group` of `count` rows or columns; `labels`: one more at the
    beginning."""
    spaces = ["0pt"] * labels
    spaces += [GUTTER if group and i % group == 0 else "0pt" for i in range(1, count)]
    return f"({', '.join(spaces)},)" if spaces else "0pt"


def _grid(grid: Grid) -> str:
    """Formats a grid as a table whose first column and row are the labels."""
    wide = max((len(row) for row in grid.rows), default=0)
    named, headed = bool(grid.row_labels), bool(grid.column_labels)
    per_row, per_column = grid.gaps
    rows = []
    if headed:
        heads = [_content(label.split("\n")) for label in grid.column_labels]
        rows.append([_content([grid.row_axis])] * named + heads)
    for number, row in enumerate(grid.rows):
        label = [_content([grid.row_labels[number]])] * named
        rows.append([*label, *map(_cell, row), *["[]"] * (wide - len(row))])
    gutters = _gutter(wide, per_column, named), _gutter(len(grid.rows), per_row, headed)
    stroke = f"(x, y) => if x < {int(named)} or y < {int(headed)} {{ none }} else {{ 0.5pt }}"
    lines = [f"#strong({_content([grid.title])})"] * bool(grid.title)
    lines += [f"#emph({_content([grid.column_axis])})"] * bool(grid.column_axis)
    cells = "".join(f"  {', '.join(row)},\n" for row in rows)
    lines.append(
        f"#table(columns: {wide + named}, align: center + horizon, inset: 3pt,\n"
        f"  column-gutter: {gutters[0]}, row-gutter: {gutters[1]},\n  stroke: {stroke},\n{cells})"
    )
    lines += [f"#emph({_content(grid.caption.split(chr(10)))})"] * bool(grid.caption)
    return "\n\n".join(lines)


def _chart(chart: Chart) -> str:
    """Formats a chart as an image: a table cannot show bars of any length and arrows between
    them."""
    drawn = svg(Picture(chart.title, "", [], [], charts=[replace(chart, title="")]))
    return f'#image(bytes({_string(drawn)}), format: "svg")'


def _legend(keys: Sequence[Key]) -> str:
    shown = [
        f"  [#box(width: 12pt, height: 8pt, fill: {_colour(key.fill)}, stroke: 0.5pt, "
        f"align(center + horizon, {_content([MARKS[key.mark]])})) #{_string(key.text)}],\n"
        for key in keys
    ]
    return f"#stack(spacing: 4pt,\n{''.join(shown)})" if shown else ""


def typst(picture: Picture) -> str:
    """Returns the picture as a Typst document of one page."""
    parts = [
        _START,
        f"#text(size: 11pt, strong({_content([picture.title])}))",
        f"#block(width: 480pt, {_content([picture.about])})",
        _legend(picture.legend),
        *map(_grid, picture.grids),
        *map(_chart, picture.charts),
    ]
    if picture.table:
        parts.append(f"#raw({_string(chr(10).join(picture.table))}, block: true)")
    return "\n\n".join(part for part in parts if part) + "\n"
