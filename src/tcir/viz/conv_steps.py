"""The pixel on each lane at each tap of a filter row."""

from __future__ import annotations

from typing import Any

from tcir.layout.tmem import LANES

from .conv_schedule import QUARTER, Lane, Schedule, Tap, read_schedule
from .palette import EMPTY, GREY, PURPLE, light, mix, viridis
from .picture import Cell, Grid, Key, Picture

OUTSIDE, STALE = mix(GREY, "#FFFFFF", 0.3), light(PURPLE)


def conv_view(
    module: Any, cta: tuple[int, int, int] = (0, 0, 0), filter_row: int | None = None
) -> Picture:
    """The steps of one filter row (the middle one) in one CTA."""
    schedule = read_schedule(module, cta)
    rows = sorted({tap.row for tap in schedule.taps})
    row = rows[len(rows) // 2] if filter_row is None else filter_row
    taps = schedule.of_filter_row(row)
    columns = [lane.pixel.coordinates[0] for tap in taps for lane in tap.lanes if lane.pixel]
    span = min(columns, default=0), max(columns, default=1)
    grids = [_quarter(schedule, taps, q, span) for q in range(LANES // QUARTER)]
    shifts = sum(tap.shift for tap in taps)
    stored = sum(place is not None for place in schedule.stores)
    return Picture(
        f"Shift reuse in {schedule.function}: filter row r={row}, CTA {cta[0]},{cta[1]}",
        f"{_copies(taps)} {len(taps)} taps; after {shifts} of them .ashift moves "
        f"every pixel one lane down. Cells: w of the input pixel on the lane. {stored} of {LANES} "
        "lanes are stored.",
        grids,
        [Key(viridis(0.15), "pixel, small w"), Key(viridis(0.9), "pixel, large w"),
         Key(OUTSIDE, "outside the image: zeros loaded", "cross"),
         Key(STALE, "stale: left behind by a shift", "hatch"),
         Key(EMPTY, "stored output q"), Key(OUTSIDE, "masked: not stored", "hatch")],
    )  # fmt: skip


def _copies(taps: list[Tap]) -> str:
    count = len({tap.copy for tap in taps})
    return "One copy to tensor memory serves" if count == 1 else f"{count} copies serve"


def _height(lanes: list[Lane]) -> str:
    """The h and n that the lanes of a sub-partition share, if they do."""
    places = {lane.pixel.coordinates[1:] for lane in lanes if lane.pixel}
    if len(places) != 1:
        return ""
    names = dict(zip(("h", "n"), next(iter(places))))
    return " ".join(f"{name}={value}" for name, value in names.items())


def _quarter(schedule: Schedule, taps: list[Tap], quarter: int, span: tuple[int, int]) -> Grid:
    lanes = range(quarter * QUARTER, (quarter + 1) * QUARTER)
    cells = [[_cell(tap.lanes[lane], span) for lane in lanes] for tap in taps]
    cells.append([_store(schedule, lane) for lane in lanes])
    places = [schedule.stores[lane] for lane in lanes if schedule.stores[lane] is not None]
    fixed = {place[:-1] for place in places if place is not None}
    where = "several rows" if len(fixed) > 1 else "nothing"
    if len(fixed) == 1:
        where = " ".join(f"{k}={v}" for k, v in zip("np", next(iter(fixed))))
    labels = [f"tap s={tap.column}{', then shift' if tap.shift else ''}" for tap in taps]
    height = _height([taps[0].lanes[i] for i in lanes])
    wrong = sorted(
        {i for tap in taps for i in lanes if tap.lanes[i].stale and schedule.stores[i] is not None}
    )
    return Grid(
        cells,
        [*labels, "stores q"],
        [str(lane) for lane in lanes],
        title=f"Quarter {quarter}: input {height}, output {where}",
        row_axis="lane",
        caption=f"WRONG: stored although stale: lanes {wrong}" if wrong else "",
        gaps=(len(taps), 0),
    )


def _cell(lane: Lane, span: tuple[int, int]) -> Cell:
    if lane.pixel is None:
        return Cell(("-",), about="undefined: nothing was loaded here")
    w = lane.pixel.coordinates[0]
    about = f"pixel (w, h, n) = {lane.pixel.coordinates}"
    if lane.stale:
        return Cell((str(w),), STALE, "hatch", f"stale: {about}")
    if lane.pixel.outside:
        return Cell((str(w),), OUTSIDE, "cross", f"outside the image, 0: {about}")
    low, high = span
    part = (w - low) / max(high - low, 1)
    return Cell((str(w),), viridis(0.12 + 0.85 * part), about=about)


def _store(schedule: Schedule, lane: int) -> Cell:
    place = schedule.stores[lane]
    if place is None:
        return Cell(("-",), OUTSIDE, "hatch", f"lane {lane}: masked, not stored")
    return Cell((str(place[-1]),), about=f"lane {lane}: output (n, p, q) = {place}")
