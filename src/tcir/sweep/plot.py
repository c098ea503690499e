"""Draws a sweep as a picture: a cell for each combination, coloured by its modelled time."""

from __future__ import annotations

from collections.abc import Sequence

from tcir.sweep.engine import legal, order
from tcir.sweep.space import Combination
from tcir.sweep.work import SweepRow
from tcir.viz.palette import EMPTY, viridis
from tcir.viz.picture import Cell, Grid, Key, Picture


def picture(name: str, combinations: Sequence[Combination], rows: Sequence[SweepRow]) -> Picture:
    """Returns a picture of a sweep, with the values of the last option along the columns and those
    of all other options along the rows. Combinations that a pass rejected are hatched.
    """
    kept = sorted((rows[number] for number in legal(rows)), key=order)
    times = [row.microseconds for row in kept if row.microseconds is not None]
    low, high = (min(times), max(times)) if times else (0.0, 0.0)
    best = kept[0] if kept else None
    places = [_place(each) for each in combinations]
    down = list(dict.fromkeys(place[0] for place in places))
    right = list(dict.fromkeys(place[1] for place in places))
    cells = [[Cell(fill=EMPTY) for _ in right] for _ in down]
    for (above, beside), row in zip(places, rows, strict=True):
        cells[down.index(above)][right.index(beside)] = _cell(row, low, high, row is best)
    grid = Grid(cells, down, right, title="microseconds, modelled")
    legend = [
        Key(viridis(1.0), f"{low:.2f} us"),
        Key(viridis(0.0), f"{high:.2f} us"),
        Key(viridis(1.0), "fastest", "ring"),
        Key(EMPTY, "not legal", "hatch"),
        Key(EMPTY, "failed", "cross"),
    ]
    about = (
        f"{len(rows)} combinations, {len(kept)} of them legal. Times are modelled, not measured."
    )
    return Picture(f"Sweep of {name}", about, [grid], legend)


def _place(combination: Combination) -> tuple[str, str]:
    """Row and column label of a combination."""
    *front, last = (f"{name}={value}" for name, value in combination.options)
    return " ".join(front) or combination.pipeline, last


def _cell(row: SweepRow, low: float, high: float, best: bool) -> Cell:
    about = f"{row.combination}: {row.message or row.bound or row.status}"
    if row.status != "ok":
        return Cell(("-",), EMPTY, "hatch" if row.status == "not legal" else "cross", about)
    if row.microseconds is None:
        return Cell(("?",), EMPTY, "", about)
    part = (high - row.microseconds) / (high - low) if high > low else 1.0
    words = (f"{row.microseconds:.2f}",)
    return Cell(words, viridis(part), "ring" if best else "", about)
