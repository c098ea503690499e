"""Draws modelled timelines as charts: warps by role, resources of the SM, mbarriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tcir.errors import InputError
from tcir.time.phases import BarrierPhase, phases
from tcir.time.roles import roles, track_of

from .palette import BLUE, EMPTY, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, YELLOW, light
from .picture import Arrow, Bar, BarRow, Chart, Key, Picture

if TYPE_CHECKING:
    from tcir.time import Span
    from tcir.time.recorded import RecordedTimeline

KINDS: dict[str, tuple[str, str, str]] = {
    "tcgen05.mma": ("mma", ORANGE, ""), "wgmma": ("mma", ORANGE, ""),
    "mma.sync": ("mma", ORANGE, ""),
    "tcgen05.cp": ("cp", PURPLE, ""), "tcgen05.shift": ("down", VERMILLION, ""),
    "tma.load": ("load", SKY, ""), "bulk.load": ("load", SKY, ""), "cp.async": ("load", SKY, ""),
    "ld.global": ("load", SKY, ""),
    "tma.store": ("out", light(BLUE), ""), "bulk.store": ("out", light(BLUE), ""),
    "st.global": ("out", light(BLUE), ""),
    "tcgen05.ld": ("tmem", YELLOW, ""), "tcgen05.st": ("tmem", YELLOW, ""),
    "ld.shared": ("smem", light(GREEN), ""), "st.shared": ("smem", light(GREEN), ""),
    "ldmatrix": ("smem", light(GREEN), ""), "stmatrix": ("smem", light(GREEN), ""),
    "mbarrier.wait": ("wait", EMPTY, "hatch"), "tcgen05.wait": ("wait", EMPTY, "hatch"),
    "cp.async.wait": ("wait", EMPTY, "hatch"), "bulk.wait": ("wait", EMPTY, "hatch"),
    "bar.sync": ("wait", EMPTY, "hatch"),
}  # fmt: skip
"""Operation -> its label, colour and mark."""
OTHER = ("plain", light(GREY), "")
MEANINGS = {
    "mma": "multiplies", "cp": "tcgen05.cp", "down": "tcgen05.shift.down",
    "load": "from L2, or its issue", "out": "stores to L2", "tmem": "tcgen05.ld, st",
    "smem": "shared memory", "wait": "for a phase, a barrier, loads", "plain": "the rest",
}  # fmt: skip
"""Label -> meaning. No two labels begin with the same letter, which represents them in terminal
text."""
ORDER = ("producer", "mma", "mma.sync", "epilogue", "store", "")
RESOURCES = (
    "L2 to SM", "HBM", "TMEM copies", "tensor pipe", "mma.sync", "TMEM port", "special function",
    "shared port", "SM to L2",
)  # fmt: skip
NARROW = 0.002
"""Fraction of the width below which consecutive bars of one kind are drawn as one."""


def timeline_view(
    recorded: Sequence[RecordedTimeline], cycles: tuple[int, int] | None = None
) -> Picture:
    """Draws a chart for each launch; a chart can be limited to a range of cycles."""
    for one in recorded:
        if cycles and cycles[0] >= one.timeline.cycles:
            raise InputError(
                f"--cycles: expected a first cycle before the end of @{one.stream.kernel}, "
                f"{one.timeline.cycles:.0f}, got {cycles[0]}"
            )
    charts = [_chart(one, cycles) for one in recorded if one.stream]
    shown = {bar.text: bar for chart in charts for row in chart.rows for bar in row.bars}
    legend = [
        Key(shown[word].fill, f"{word}: {meaning}", shown[word].mark)
        for word, meaning in MEANINGS.items()
        if word in shown
    ]
    return Picture(
        "What overlaps, modelled: " + ", ".join(f"@{one.stream.kernel}" for one in recorded),
        "Cycles of one SM, by the time model and never measured. A row for each kind of warp, each "
        "resource and each mbarrier (its phases by number); an arrow leads from what completed a "
        "phase to the wait that it ends.",
        [],
        legend,
        charts=charts,
    )


def _chart(one: RecordedTimeline, cycles: tuple[int, int] | None) -> Chart:
    line = one.timeline
    start, end = cycles or (0, line.cycles)
    end = min(end, line.cycles)
    narrow = (end - start) * NARROW
    by_track: dict[str, list[Span]] = {}
    for span in line.spans:
        by_track.setdefault(span.track, []).append(span)
    labels = _warps(one) | _resources(by_track)
    places = {track: row for row, track in enumerate(labels)}
    rows = [
        BarRow(label, _merged([_bar(one, span) for span in by_track[track]], narrow))
        for track, label in labels.items()
    ]
    arrows = []
    for flow in line.flows:
        source, sink = line.spans[flow.source], line.spans[flow.sink]
        if sink.name == "mbarrier.wait" and source.track in places and sink.track in places:
            arrows.append(Arrow(places[source.track], source.end, places[sink.track], sink.end))
    barriers: dict[str, list[BarrierPhase]] = {}
    for phase in phases(one.stream, line):
        barriers.setdefault(phase.track.removeprefix("CTA 0 "), []).append(phase)
    rows += [
        BarRow(f"{name}, by {found[0].by}", list(map(_phase, found)), thin=True)
        for name, found in barriers.items()
    ]
    title = f"@{one.stream.kernel}, CTA {', '.join(map(str, one.stream.ctas))}; {line}"
    return Chart(rows, arrows, start, end, "cycles, modelled", title)


def _warps(one: RecordedTimeline) -> dict[str, str]:
    """Returns the tracks of warps with their labels, by role; of warps that do the same, only the
    first."""
    ops: dict[tuple[int, int], list[str]] = {}
    for event in one.stream:
        ops.setdefault((event.cta, event.warp), []).append(event.op)
    alike: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    named = roles(one.stream)
    for warp, role in named.items():
        done = tuple(op for op in ops[warp] if op != "alu")
        alike.setdefault((warp[0], role, done), []).append(warp)
    several = len(one.stream.ctas) > 1
    found = {}
    groups = sorted(alike.values(), key=lambda g: (g[0][0], ORDER.index(named[g[0]]), g))
    for group in groups:
        cta, first = group[0]
        numbers = f"warp {first}" if len(group) == 1 else f"warps {first}-{group[-1][1]}"
        role = f"{named[group[0]]}, " if named[group[0]] else ""
        found[track_of(cta, first)] = f"{f'CTA {cta} ' if several else ''}{role}{numbers}"
    return found


def _resources(tracks: dict[str, list[Span]]) -> dict[str, str]:
    """Returns the tracks of resources with their labels; of the four of an SM's sub-partitions,
    only the first."""
    found = {}
    for name in RESOURCES:
        for track in sorted(tracks):
            if track.endswith((name, f"{name} 0")):
                found[track] = track.replace(f"{name} 0", f"{name}, quarter 0")
    return found


def _bar(one: RecordedTimeline, span: Span) -> Bar:
    text, fill, mark = KINDS.get(span.name, OTHER)
    event = one.stream[span.event]
    details = ", ".join(f"{name} {value}" for name, value in event.detail.items())
    about = (
        f"{span.name}, PTX line {event.line}, cycles {span.start:.0f} to {span.end:.0f}"
        f"{f': {details}' if details else ''}"
    )
    return Bar(span.start, span.end, text, fill, mark, about)


def _phase(phase: BarrierPhase) -> Bar:
    about = f"phase {phase.number}, cycles {phase.start:.0f} to {phase.end:.0f}"
    fill = light(SKY) if phase.number % 2 else light(GREY)
    return Bar(phase.start, phase.end, f"{phase.number}", fill, "", about)


def _merged(bars: list[Bar], narrow: float) -> list[Bar]:
    """Joins bars that are too narrow to be seen to the preceding bar of the same kind."""
    found: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        last = found[-1] if found else None
        if (
            last is not None
            and last.text == bar.text
            and bar.start - last.end < narrow / 2
            and bar.end - bar.start < narrow
        ):
            found[-1] = replace(last, end=bar.end, about=f"{last.about} …")
            continue
        found.append(bar)
    return [replace(bar, about=bar.about.split(" … …")[0]) for bar in found]
