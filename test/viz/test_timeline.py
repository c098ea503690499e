"""Timelines as pictures: rows and arrows against the model's spans and flows."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tcir.machine.events import EventStream
from tcir.session.timeline import timelines
from tcir.time import simulate
from tcir.time.phases import phases
from tcir.time.recorded import RecordedTimeline
from tcir.time.roles import roles
from tcir.viz.command import main
from tcir.viz.svg import svg, ticks
from tcir.viz.text import text
from tcir.viz.timeline import timeline_view

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = str(EXAMPLES / "matmul.mlir")


@pytest.fixture(scope="module")
def gemm() -> RecordedTimeline:
    (found,) = timelines(GEMM, "gemm{n-tile=128}")
    return found


def test_roles_of_the_warps(gemm: RecordedTimeline) -> None:
    assert roles(gemm.stream) == {
        (0, 0): "epilogue",
        (0, 1): "epilogue",
        (0, 2): "epilogue",
        (0, 3): "epilogue",
        (0, 4): "producer",
        (0, 5): "mma",
    }


def test_the_rows_hold_the_spans(gemm: RecordedTimeline) -> None:
    (chart,) = timeline_view([gemm]).charts
    rows = {row.label: row for row in chart.rows}
    assert list(rows)[:3] == ["producer, warp 4", "mma, warp 5", "epilogue, warps 0-3"]
    spans = [span for span in gemm.timeline.spans if span.track == "tensor pipe"]
    assert [(b.start, b.end, b.text) for b in rows["tensor pipe"].bars] == [
        (span.start, span.end, "mma") for span in spans
    ]
    assert len(spans) == 4 * 6  # K = 328 in steps of 64
    waits = [bar for bar in rows["mma, warp 5"].bars if bar.text == "wait" and bar.mark == "hatch"]
    assert len(waits) >= 6
    for row in chart.rows:
        for one, other in zip(row.bars, row.bars[1:]):
            assert one.end <= other.start, row.label


def test_arrows_end_where_a_wait_does(gemm: RecordedTimeline) -> None:
    (chart,) = timeline_view([gemm]).charts
    assert len(chart.arrows) >= 6 + 3 + 1  # loads, freed stages, the epilogue
    for arrow in chart.arrows:
        assert arrow.start <= arrow.end
        ended = [bar for bar in chart.rows[arrow.sink].bars if bar.end == arrow.end]
        assert [bar.text for bar in ended] == ["wait"]
    pairs = {(chart.rows[a.source].label, chart.rows[a.sink].label) for a in chart.arrows}
    assert pairs == {
        ("L2 to SM", "mma, warp 5"),
        ("mma, warp 5", "producer, warp 4"),
        ("mma, warp 5", "epilogue, warps 0-3"),
    }


def test_phases_of_the_ring(gemm: RecordedTimeline) -> None:
    """Three stages, six steps: each full mbarrier has two phases, and they do not overlap."""
    found = phases(gemm.stream, gemm.timeline)
    by = {name: [p for p in found if p.by == name] for name in ("copies", "mma", "arrivals")}
    assert sorted(p.number for p in by["copies"]) == [0, 0, 0, 1, 1, 1]
    assert len({p.barrier for p in by["copies"]}) == 3
    assert len(by["mma"]) == 3 + 1 and not by["arrivals"]
    for one, other in itertools.pairwise(found):
        if one.track == other.track:
            assert one.end <= other.start and one.number + 1 == other.number


def test_a_wait_that_is_not_recorded_has_no_arrow(gemm: RecordedTimeline) -> None:
    """The picture draws what the stream says: without dependences nothing is drawn between rows."""
    cut = EventStream(
        (type(e)(e.cta, e.warp, e.op, e.detail, (), e.line) for e in gemm.stream), kernel="cut"
    )
    (chart,) = timeline_view([RecordedTimeline(cut, simulate(cut, "sm_100a"))]).charts
    assert not chart.arrows
    assert not any("barrier" in row.label for row in chart.rows)


def test_svg_and_text(gemm: RecordedTimeline) -> None:
    picture = timeline_view([gemm])
    drawn = svg(picture)
    root = ElementTree.fromstring(drawn)
    width = float(root.attrib["width"])
    for x, wide in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn):
        assert 0 <= float(x) and float(x) + float(wide) <= width
    assert "modelled" in drawn and drawn.count('class="flow"') == len(picture.charts[0].arrows)
    lines = text(picture).splitlines()
    pipe = next(line for line in lines if line.lstrip().startswith("tensor pipe"))
    assert set(pipe.split()[-1]) == {".", "m"} and len(pipe.split()[-1]) == 100
    keys = [line[0] for line in lines if re.match(r"^\w  \w+: ", line)]
    assert len(keys) == len(set(keys)) >= 6


def test_a_part_of_the_time(gemm: RecordedTimeline) -> None:
    (chart,) = timeline_view([gemm], (1000, 2000)).charts
    assert (chart.start, chart.end) == (1000, 2000)
    drawn = svg(timeline_view([gemm], (1000, 2000)))
    assert len(drawn) < len(svg(timeline_view([gemm])))


def test_round_ticks() -> None:
    assert ticks(0, 8698) == [0, 2000, 4000, 6000, 8000]
    assert ticks(1000, 1009) == [1000, 1002, 1004, 1006, 1008]


def test_the_command(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["timeline", GEMM, "--pipeline=gemm"]
    assert main([*words, "-o", "x.html"]) == 0
    assert Path("x.html").read_text().startswith("<!doctype html>")
    for more, said in (
        (["--cycles=9,3"], "expected two cycles such as 0,2000, got 9,3"),
        (["--cycles=900000,900001"], "expected a first cycle before the end of @matmul"),
        (["--entry=other"], "--entry: expected one of matmul, got 'other'"),
        (["-o", "nowhere/x.svg"], "there is no directory 'nowhere'"),
    ):
        assert main([*words, *more]) == 3
        assert said in capsys.readouterr().err
    assert main(["timeline", GEMM, "--pipeline=conv-shift-reuse"]) == 3
    assert "matmul.mlir:9:10: compare-conv-schedules expected" in capsys.readouterr().err
    assert main(["timeline", GEMM]) == 3
    assert "--pipeline" in capsys.readouterr().err


def test_the_cycles_on_the_page_are_those_of_its_pictures() -> None:
    """docs/how-to/timeline.md: figures in bold are in the picture above or below them."""
    docs = EXAMPLES.parent / "docs"
    page = (docs / "how-to" / "timeline.md").read_text(encoding="utf-8")
    drawn = [
        (docs / name).read_text(encoding="utf-8")
        for name in re.findall(r"\(\.\./(pictures/timeline_\w+\.svg)\)", page)
    ]
    said = re.findall(r"\*\*(\d+) cycles\*\*", page)
    assert len(said) == len(drawn) == 4
    for cycles in said:
        assert any(f"modelled: {cycles} cycles" in picture for picture in drawn), cycles
