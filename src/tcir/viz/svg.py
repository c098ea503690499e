"""Pictures as self-contained SVG and HTML: no scripts, no external fonts or files."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from .palette import INK, PAPER, ink_on
from .picture import BLANK, Arrow, Bar, Cell, Chart, Grid, Key, Picture

CHAR, LINE, SIZE = 7.2, 14, 12
PAD, GAP, MARGIN = 6, 10, 16
HEAD, NARROWEST = 9.2, 480.0
"""Width of a character of the title; minimum width of a picture, so that the words above it fill
few lines."""
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(x: float, y: float, words: str, anchor: str = "start", extra: str = "") -> str:
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"{extra}>'
        f"{escape(words)}</text>"
    )


def _box(x: float, y: float, width: float, height: float, fill: str, mark: str) -> str:
    place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
    parts = [f'<rect {place} fill="{fill}" stroke="#777" stroke-width="0.6"/>']
    if mark in ("hatch", "cross"):
        parts.append(f'<rect {place} fill="url(#{mark})"/>')
    if mark == "ring":
        inner = (
            f'x="{_number(x + 1.5)}" y="{_number(y + 1.5)}" width="{_number(width - 3)}" '
            f'height="{_number(height - 3)}"'
        )
        parts.append(f'<rect {inner} fill="none" stroke="{INK}" stroke-width="2.5"/>')
    return "".join(parts)


def _cell(cell: Cell, x: float, y: float, width: float, height: float, name: str) -> str:
    ink = ink_on(cell.fill)
    top = y + (height - LINE * len(cell.lines)) / 2 + SIZE - 1
    # A halo of the cell's own colour keeps text readable on hatching.
    halo = f' stroke="{cell.fill}" stroke-width="5" paint-order="stroke"' if cell.mark else ""
    lines = "".join(
        _text(x + width / 2, top + i * LINE, line, "middle", f' fill="{ink}"{halo}')
        for i, line in enumerate(cell.lines)
    )
    about = f"<title>{escape(cell.about)}</title>" if cell.about else ""
    mark = f' data-mark="{cell.mark}"' if cell.mark else ""
    return (
        f'<g class="cell" data-at="{name}"{mark}>{about}'
        f"{_box(x, y, width, height, cell.fill, cell.mark)}{lines}</g>"
    )


def _widest(words: list[str]) -> float:
    return max((len(line) for text in words for line in text.split("\n")), default=0) * CHAR


def _cell_width(grid: Grid) -> float:
    words = [line for row in grid.rows for cell in row for line in cell.lines]
    return max(_widest([*words, *grid.column_labels]) + PAD, 18)


def _grid(grid: Grid, width: float, top: float, index: int) -> tuple[str, float, float]:
    """Returns the grid's SVG from ``top`` on, its width and its bottom edge."""
    cells = [cell for row in grid.rows for cell in row]
    height = max((len(c.lines) for c in cells), default=1) * LINE + PAD
    left = MARGIN + max(_widest(grid.row_labels), _widest([grid.row_axis])) + PAD
    out, y = [], top
    if grid.title:
        out.append(_text(MARGIN, y + SIZE, grid.title, extra=' class="title"'))
        y += LINE + PAD
    if grid.column_axis:
        out.append(_text(left, y + SIZE, grid.column_axis, extra=' class="axis"'))
        y += LINE
    if grid.row_axis:
        out.append(_text(left - PAD, y + SIZE, grid.row_axis, "end", ' class="axis"'))
    per_row, per_column = grid.gaps

    def across(column: int) -> float:
        return left + column * width + (GAP * (column // per_column) if per_column else 0)

    tall = max((label.count("\n") + 1 for label in grid.column_labels), default=0)
    for column, label in enumerate(grid.column_labels):
        for i, line in enumerate(label.split("\n")):
            middle = across(column) + width / 2
            out.append(_text(middle, y + SIZE + i * LINE, line, "middle", ' class="label"'))
    y += max(tall, 1 if grid.row_axis else 0) * LINE + 3
    for number, row in enumerate(grid.rows):
        if per_row and number and number % per_row == 0:
            y += GAP
        if grid.row_labels:
            middle = y + height / 2 + SIZE / 2 - 2
            out.append(_text(left - PAD, middle, grid.row_labels[number], "end", ' class="label"'))
        out += [
            _cell(cell, across(column), y, width, height, f"{index}:{number},{column}")
            for column, cell in enumerate(row)
            if cell is not BLANK
        ]
        y += height
    right = across(max((len(row) for row in grid.rows), default=1) - 1) + width
    for line in grid.caption.split("\n") if grid.caption else []:
        y += LINE + 2
        out.append(_text(left, y, line, extra=' class="caption"'))
        right = max(right, left + len(line) * CHAR)
    wide = max(right, MARGIN + len(grid.title) * CHAR, left + len(grid.column_axis) * CHAR)
    return "".join(out), wide + MARGIN, y + GAP


PLOT, BAR, THIN = 960, 22, 11
"""Width of a chart's axis, heights of its rows."""
TIP = (
    '<marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" '
    'orient="auto"><path d="M0 0L6 3L0 6z" fill="#000"/></marker>'
)
"""Tip of an arrow."""


def ticks(start: float, end: float) -> list[float]:
    """Returns about eight round numbers between `start` and `end`."""
    step = 10.0 ** math.floor(math.log10(max(end - start, 1) / 8))
    step *= next(factor for factor in (1, 2, 5, 10) if (end - start) / (step * factor) <= 8)
    return [n * step for n in range(math.ceil(start / step), math.floor(end / step) + 1)]


def _bar(bar: Bar, x: float, width: float, y: float, height: float) -> str:
    label = ""
    if len(bar.text) * CHAR < width and height > LINE and not bar.mark:
        middle = y + height / 2 + SIZE / 2 - 2
        label = _text(x + width / 2, middle, bar.text, "middle", f' fill="{ink_on(bar.fill)}"')
    box = _box(x, y, max(width, 0.4), height, bar.fill, bar.mark if width > 3 else "")
    return f'<g class="bar"><title>{escape(bar.about)}</title>{box}{label}</g>'


def _arrow(arrow: Arrow, x: Callable[[float], float], places: list[tuple[float, float]]) -> str:
    (top, height), (low, deep) = places[arrow.source], places[arrow.sink]
    down = low > top
    first, last = (top + height, low) if down else (top, low + deep)
    line = f"M{_number(x(arrow.start))} {_number(first)}L{_number(x(arrow.end))} {_number(last)}"
    return (
        f'<path class="flow" d="{line}" fill="none" stroke="{INK}" stroke-width="0.9" '
        'stroke-opacity="0.55" marker-end="url(#tip)"/>'
    )


def _chart(chart: Chart, top: float) -> tuple[str, float, float]:
    """Returns the chart's SVG, its right edge, and its bottom edge."""
    left = MARGIN + _widest([row.label for row in chart.rows]) + PAD
    scale = PLOT / (chart.end - chart.start)

    def x(time: float) -> float:
        return left + (min(max(time, chart.start), chart.end) - chart.start) * scale

    out, y = [], top
    if chart.title:
        out.append(_text(MARGIN, y + SIZE, chart.title, extra=' class="title"'))
        y += LINE + PAD
    out.append(_text(left, y + SIZE, chart.axis, extra=' class="axis"'))
    y += LINE
    begin = y + LINE + 3
    places: list[tuple[float, float]] = []
    low = begin
    for row in chart.rows:
        height = float(THIN if row.thin else BAR)
        places.append((low, height))
        low += height + (2 if row.thin else PAD)
    for tick in ticks(chart.start, chart.end):
        at = x(tick)
        out.append(
            f'<path d="M{_number(at)} {_number(begin - 3)}V{_number(low)}" stroke="#ddd"/>'
            + _text(at, y + SIZE, f"{tick:.0f}", "middle", ' class="label"')
        )
    for row, (at, height) in zip(chart.rows, places, strict=True):
        middle = at + height / 2 + SIZE / 2 - 2
        out.append(_text(left - PAD, middle, row.label, "end", ' class="label"'))
        out += [
            _bar(bar, x(bar.start), x(bar.end) - x(bar.start), at, height)
            for bar in row.bars
            if bar.end > chart.start and bar.start < chart.end
        ]
    for arrow in chart.arrows:
        if chart.start <= arrow.end <= chart.end and arrow.start >= chart.start:
            out.append(_arrow(arrow, x, places))
    return "".join(out), left + PLOT + 2 * MARGIN, low + GAP


def _legend(keys: list[Key], top: float, limit: float) -> tuple[str, float]:
    out, x, y = [], float(MARGIN), top
    for key in keys:
        width = 18 + PAD + len(key.text) * CHAR + 2 * PAD
        if x > MARGIN and x + width > limit:
            x, y = MARGIN, y + LINE + PAD
        out.append(
            f'<g class="key">{_box(x, y, 18, LINE, key.fill, key.mark)}'
            f"{_text(x + 18 + PAD, y + SIZE - 1, key.text)}</g>"
        )
        x += width
    return "".join(out), y + LINE + GAP


def _wrapped(words: str, limit: float) -> list[str]:
    lines, line = [], ""
    for word in words.split():
        if line and (len(line) + 1 + len(word)) * CHAR > limit:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines


def svg(picture: Picture) -> str:
    """Returns the picture as an SVG document."""
    cell = max((_cell_width(grid) for grid in picture.grids), default=0)
    sizes = [_grid(grid, cell, 0, 0)[1] for grid in picture.grids]
    sizes += [_chart(chart, 0)[1] for chart in picture.charts]
    sizes.append(2 * MARGIN + len(picture.title) * HEAD)
    width = max([NARROWEST, *sizes])
    y = float(MARGIN)
    parts = [_text(MARGIN, y + SIZE + 3, picture.title, extra=' class="head"')]
    y += LINE + 2 * PAD
    for line in _wrapped(picture.about, width - 2 * MARGIN):
        parts.append(_text(MARGIN, y + SIZE, line))
        y += LINE
    y += GAP
    legend, y = _legend(picture.legend, y, width - MARGIN)
    parts.append(f'<g class="legend">{legend}</g>')
    for index, grid in enumerate(picture.grids):
        drawn, _, y = _grid(grid, cell, y, index)
        parts.append(f'<g class="grid">{drawn}</g>')
        y += GAP
    for chart in picture.charts:
        drawn, _, y = _chart(chart, y)
        parts.append(f'<g class="chart">{drawn}</g>')
        y += GAP
    size = f'width="{_number(width)}" height="{_number(y)}"'
    box = f"0 0 {_number(width)} {_number(y)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{box}" role="img" '
        f'font-family="{FONT}" font-size="{SIZE}" fill="{INK}">\n'
        f"<title>{escape(picture.title)}</title><desc>{escape(picture.about)}</desc>\n"
        "<style>.head{font-size:15px;font-weight:bold}.title{font-weight:bold}"
        ".axis,.caption{fill:#333;font-style:italic}.label{fill:#333}</style>\n"
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="2" height="6" fill="#000" '
        'fill-opacity="0.45"/></pattern><pattern id="cross" width="7" height="7" '
        'patternUnits="userSpaceOnUse"><path d="M0 0L7 7M7 0L0 7" stroke="#000" '
        f'stroke-opacity="0.4" stroke-width="1"/></pattern>{TIP if picture.charts else ""}</defs>\n'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def html(picture: Picture) -> str:
    """Returns the picture as an HTML page."""
    table = f"<pre>{escape(chr(10).join(picture.table))}</pre>\n" if picture.table else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(picture.title)}</title>\n"
        "<style>body{margin:1rem;background:#fff;color:#111}svg{max-width:100%;height:auto}"
        f"pre{{font:12px {FONT}}}</style></head>\n<body>\n{svg(picture)}{table}</body>\n</html>\n"
    )
