"""Draws the pixel that each lane holds at each tap of a filter row, and the lanes whose product is
masked.
"""

from __future__ import annotations

from typing import Any

from tcir.layout.tmem import LANES

from .conv_schedule import QUARTER, Lane, Tap, TapSchedule, read_schedule
from .palette import EMPTY, GREEN, GREY, PURPLE, light, mix, viridis
from .picture import Cell, Grid, Key, Picture

OUTSIDE, STALE, FRESH = mix(GREY, "#FFFFFF", 0.3), light(PURPLE), light(GREEN)


def conv_view(
    module: Any, cta: tuple[int, int, int] = (0, 0, 0), filter_row: int | None = None
) -> Picture:
    """Draws the steps of one filter row (default: the middle one) in one CTA."""
    schedule = read_schedule(module, cta)
    rows = sorted({tap.row for tap in schedule.taps})
    row = rows[len(rows) // 2] if filter_row is None else filter_row
    taps = schedule.of_filter_row(row)
    columns = [lane.pixel.coordinates[0] for tap in taps for lane in tap.lanes if lane.pixel]
    span = min(columns, default=0), max(columns, default=1)
    grids = [_quarter(schedule, taps, q, span) for q in range(LANES // QUARTER)]
    fresh = any(lane.halo for tap in taps for lane in tap.lanes)
    stale = any(lane.stale for tap in taps for lane in tap.lanes)
    stored = sum(place is not None for place in schedule.stores)
    masked = (
        []
        if all(all(tap.enabled) for tap in taps)
        else [Key(OUTSIDE, "disabled output lane: its sum stays as it is", "ring")]
    )
    return Picture(
        f"Shift reuse in {schedule.function}: filter row r={row}, CTA {cta[0]},{cta[1]}",
        f"{_copies(taps)} {len(taps)} taps; {_shifts(taps)}. "
        f"Cells: w of the input pixel on the lane{_or_all(taps)}. "
        f"{stored} of {LANES} lanes are stored.",
        grids,
        [Key(viridis(0.15), "pixel, small w"), Key(viridis(0.9), "pixel, large w"),
         Key(OUTSIDE, "outside the image: zeros loaded", "cross"),
         *([Key(STALE, "stale: left behind by a shift", "hatch")] if stale else []),
         *([Key(FRESH, "pixel of the halo: brought by a refresh")] if fresh else []), *masked,
         Key(EMPTY, "stored output q"), Key(OUTSIDE, "masked: not stored", "hatch")],
        lane_table(schedule, taps),
    )  # fmt: skip


def lane_table(schedule: TapSchedule, taps: list[Tap]) -> list[str]:
    """Lists, for each lane, its output n.p.q and the pixel n.h.w that it holds at each tap; ``-``
    stands for a masked lane.
    """
    rows = [["lane", "output", *(f"s={tap.column}" for tap in taps)]]
    for lane in range(LANES):
        place = schedule.stores[lane]
        output = "none" if place is None else ".".join(map(str, place))
        rows.append([str(lane), output, *(_entry(tap, lane) for tap in taps)])
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            (f"{row[0]:>{wide[0]}}", *(f"{word:<{n}}" for word, n in zip(row[1:], wide[1:])))
        ).rstrip()
        for row in rows
    ]


def _entry(tap: Tap, lane: int) -> str:
    held = tap.lanes[lane]
    if held.pixel is None:
        return "undefined"
    words = "zero" if held.pixel.outside else _name(held)
    words += " stale" if held.stale else ""
    return words if tap.enabled[lane] else f"- ({words})"


def _name(lane: Lane) -> str:
    """Formats a lane's pixel as ``n.h.w``."""
    assert lane.pixel is not None
    return ".".join(map(str, reversed(lane.pixel.coordinates)))


def _or_all(taps: list[Tap]) -> str:
    quarters = [range(q, q + QUARTER) for q in range(0, LANES, QUARTER)]
    alike = all(_height([tap.lanes[i] for i in lanes]) for tap in taps for lanes in quarters)
    return "" if alike else ", n.h.w where a quarter has several rows"


def _shifts(taps: list[Tap]) -> str:
    by = {tap.shift for tap in taps if tap.shift}
    if not by:
        return "none is shifted"
    count = sum(bool(tap.shift) for tap in taps)
    words = f"after {count} of them {by.pop()} moves every pixel one lane down"
    fresh = ", ".join(map(str, next((tap.refresh for tap in taps if tap.refresh), ())))
    return f"{words}, and lanes {fresh} get one of the halo" if fresh else words


def _copies(taps: list[Tap]) -> str:
    count = len({tap.copy for tap in taps})
    return "One copy to tensor memory serves" if count == 1 else f"{count} copies serve"


def _height(lanes: list[Lane]) -> str:
    """Formats the h and n that the lanes of a sub-partition share; "" if they differ."""
    places = {lane.pixel.coordinates[1:] for lane in lanes if lane.pixel}
    if len(places) != 1:
        return ""
    names = dict(zip(("h", "n"), next(iter(places))))
    return " ".join(f"{name}={value}" for name, value in names.items())


def _quarter(schedule: TapSchedule, taps: list[Tap], quarter: int, span: tuple[int, int]) -> Grid:
    lanes = range(quarter * QUARTER, (quarter + 1) * QUARTER)
    whole = not all(_height([tap.lanes[i] for i in lanes]) for tap in taps)
    cells = [
        [_cell(tap.lanes[lane], span, whole, tap.enabled[lane]) for lane in lanes] for tap in taps
    ]
    cells.append([_store(schedule, lane, whole) for lane in lanes])
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
        [*labels, "stores n.p.q" if whole else "stores q"],
        [str(lane) for lane in lanes],
        title=f"Quarter {quarter}: input {height or 'several rows'}, output {where}",
        row_axis="lane",
        caption=f"WRONG: stored although stale: lanes {wrong}" if wrong else "",
        gaps=(len(taps), 0),
    )


def _cell(lane: Lane, span: tuple[int, int], whole: bool, enabled: bool) -> Cell:
    if lane.pixel is None:
        return Cell(("-",), about="undefined: nothing was loaded here")
    w = lane.pixel.coordinates[0]
    words = (_name(lane) if whole else str(w),)
    about = f"pixel (w, h, n) = {lane.pixel.coordinates}"
    if not enabled:
        return Cell(words, OUTSIDE, "ring", f"disabled output lane: {about}")
    if lane.stale:
        return Cell(words, STALE, "hatch", f"stale: {about}")
    if lane.pixel.outside:
        return Cell(words, OUTSIDE, "cross", f"outside the image, 0: {about}")
    if lane.halo:
        return Cell(words, FRESH, about=f"of the halo: {about}")
    low, high = span
    part = (w - low) / max(high - low, 1)
    return Cell(words, viridis(0.12 + 0.85 * part), about=about)


def _store(schedule: TapSchedule, lane: int, whole: bool) -> Cell:
    place = schedule.stores[lane]
    if place is None:
        return Cell(("-",), OUTSIDE, "hatch", f"lane {lane}: masked, not stored")
    words = ".".join(map(str, place)) if whole else str(place[-1])
    return Cell((words,), about=f"lane {lane}: output (n, p, q) = {place}")
