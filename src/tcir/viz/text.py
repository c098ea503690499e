"""Pictures as terminal text, with colours only on request."""

from __future__ import annotations

from .palette import ink_on
from .picture import MARKS, Bar, Cell, Chart, Grid, Picture


def _paint(words: str, fill: str, colour: bool) -> str:
    if not colour or not fill:
        return words
    ink = ink_on(fill)
    codes = [";".join(str(int(c[i : i + 2], 16)) for i in (1, 3, 5)) for c in (ink, fill)]
    return f"\x1b[38;2;{codes[0]};48;2;{codes[1]}m{words}\x1b[0m"


def _words(cell: Cell) -> str:
    return " ".join(cell.lines) + (MARKS[cell.mark] if cell.mark else "")


def _grid(grid: Grid, colour: bool) -> list[str]:
    words = [[_words(cell) for cell in row] for row in grid.rows]
    labels = [label.split("\n") for label in grid.column_labels]
    wide = max(
        (len(w) for w in [*(w for row in words for w in row), *(x for lab in labels for x in lab)]),
        default=1,
    )
    left = max((len(label) for label in [*grid.row_labels, grid.row_axis]), default=0)
    per_row, per_column = grid.gaps

    def line(head: str, items: list[str]) -> str:
        parts = [
            (" |" if per_column and i and i % per_column == 0 else "") + " " + item
            for i, item in enumerate(items)
        ]
        return f"{head:>{left}}{''.join(parts)}".rstrip()

    out = [grid.title] if grid.title else []
    if grid.column_axis:
        out.append(f"{'':>{left}} {grid.column_axis}")
    for i in range(max((len(label) for label in labels), default=0)):
        heads = [f"{label[i] if i < len(label) else '':^{wide}}" for label in labels]
        out.append(line(grid.row_axis if i == 0 else "", heads))
    for number, row in enumerate(grid.rows):
        if per_row and number and number % per_row == 0:
            out.append("")
        label = grid.row_labels[number] if grid.row_labels else ""
        painted = [_paint(f"{w:^{wide}}", cell.fill, colour) for w, cell in zip(words[number], row)]
        out.append(line(label, painted))
    return [*out, *grid.caption.split("\n")] if grid.caption else out


COLUMNS = 100
"""Number of columns of a chart."""


def _chart(chart: Chart, colour: bool) -> list[str]:
    """Formats a chart with one character per hundredth of the time: the first letter of the bar
    that takes most of it."""
    left = max(len(row.label) for row in chart.rows)
    step = (chart.end - chart.start) / COLUMNS
    out = [chart.title] if chart.title else []
    out.append(f"{'':>{left}} {chart.axis}: {chart.start:.0f} to {chart.end:.0f}")
    for row in chart.rows:
        most: list[tuple[float, Bar | None]] = [(0.0, None)] * COLUMNS
        for bar in row.bars:
            first = max(0, int((bar.start - chart.start) / step))
            last = min(COLUMNS - 1, int((bar.end - chart.start) / step))
            for place in range(first, last + 1):
                begin = chart.start + place * step
                part = min(bar.end, begin + step) - max(bar.start, begin)
                if part > most[place][0]:
                    most[place] = part, bar
        drawn = [("." if bar is None else bar.text[0], bar) for _, bar in most]
        cells = "".join(_paint(c, bar.fill if bar else "", colour) for c, bar in drawn)
        out.append(f"{row.label:>{left}} {cells}")
    return out


def text(picture: Picture, colour: bool = False) -> str:
    """Returns title, table, grids and legend as lines of text."""
    out = [picture.title, picture.about, ""]
    out += [*picture.table, ""] if picture.table else []
    for grid in picture.grids:
        out += [*_grid(grid, colour), ""]
    for chart in picture.charts:
        out += [*_chart(chart, colour), ""]
    for key in picture.legend:
        if picture.charts:
            out.append(f"{_paint(key.text[0], key.fill, colour)}  {key.text}")
        elif key.mark:
            out.append(f"{MARKS[key.mark]}  {key.text}")
        elif colour:
            out.append(f"{_paint('  ', key.fill, colour)} {key.text}")
    return "\n".join(out).rstrip() + "\n"
