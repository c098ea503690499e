"""wgmma in the time model: events of the machine, times added up by hand, public measurements."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tcir
from tcir.errors import LaunchError
from tcir.machine.events import EventStream, Recording
from tcir.program.execution import run_sequence
from tcir.run import run_ptx
from tcir.run_options import RunOptions
from tcir.time import Constants, Surroundings, modelled_time, simulate
from tcir.time.build import WarpTrack
from tcir.time.hopper_rows import HOPPER_ROWS, Warpgroup
from tcir.tools.dev import time_wgmma
from tcir.tools.dev.time_wgmma import counted, section, taken

C = Constants("sm_90a")
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GREAT = tuple(f"gemm {n} f16" for n in (2048, 4096, 6144, 8192))
PREDICTIONS = ROOT / "bench/predictions_sm90a.json"
HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3},"


def _cycles(n: int, count: int, a_in: str = "smem") -> float:
    warp = WarpTrack(EventStream(), 0)
    made = [warp.op("wgmma", m=64, n=n, k=16, kind="f16", a_in=a_in) for _ in range(count)]
    warp.op("wgmma.wait", made)
    return simulate(warp.stream, C).cycles


def test_a_wgmma_is_issued_takes_its_columns_and_can_then_be_read() -> None:
    assert _cycles(256, 1) == pytest.approx(4 + 128 + 32 + 0.12 * 256)
    assert _cycles(256, 5) - _cycles(256, 4) == 128


@pytest.mark.parametrize(
    ("n", "a_in", "cycles"),
    [(64, "smem", 32), (32, "smem", 24), (8, "smem", 18), (32, "registers", 16)],
)
def test_a_narrow_one_takes_as_long_as_its_operands(n: int, a_in: str, cycles: float) -> None:
    """A: 2048 bytes, B: 32 a column, at 128 a cycle."""
    assert _cycles(n, 9, a_in) - _cycles(n, 8, a_in) == cycles


def test_two_warpgroups_share_the_tensor_cores() -> None:
    stream = EventStream()
    groups = [Warpgroup(stream, number) for number in range(2)]
    made = [group.multiply(256, 4) for group in groups]
    for group, done in zip(groups, made, strict=True):
        group.wait(done)
    line = simulate(stream, C)
    assert line.cycles == pytest.approx(4 + 2 * 4 * 128 + 32 + 0.12 * 256)
    pipes = {span.track for span in line.spans if "pipe" in span.track}
    assert pipes == {f"tensor pipe {number}" for number in range(4)}
    assert line.limits["tensor pipe"] == pytest.approx(1024 / line.cycles)


def test_targets_without_it_refuse_it() -> None:
    warp = WarpTrack(EventStream(), 0)
    warp.op("wgmma", m=64, n=8, k=16, kind="f16", a_in="smem")
    with pytest.raises(LaunchError, match=r"wgmma .*cannot be timed on sm_100a"):
        simulate(warp.stream, "sm_100a")


def test_rows_that_fixed_constants_are_met() -> None:
    rows = [row for row in HOPPER_ROWS if row.fit]
    assert len(rows) == 3
    for row in rows:
        assert row.predict(C) == pytest.approx(row.measured, rel=0.01)


def test_a_wait_names_the_wgmma_of_the_groups_that_it_waits_for() -> None:
    """Three groups, of two, one and no wgmma; one of A in registers."""
    text = (
        HEADER
        + f"""
.visible .entry k()
{{
 .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<2>; .reg .pred %p<2>;
 .shared .align 1024 .b8 tile[4096];
 mov.u32 %r5, tile; cvt.u64.u32 %d0, %r5; shr.u64 %d0, %d0, 4;
 or.b64 %d0, %d0, 0x0000000800010000;
 mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
 setp.ne.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 0;
 wgmma.fence.sync.aligned;
 {WGMMA} %d0, %d0, %p0, 1, 1, 0, 0;
 {WGMMA} %d0, %d0, %p1, 1, 1, 0, 0;
 wgmma.commit_group.sync.aligned;
 {WGMMA} {{%r0, %r1, %r2, %r3}}, %d0, %p1, 1, 1, 0;
 wgmma.commit_group.sync.aligned;
 wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 2;
 wgmma.wait_group.sync.aligned 0;
 ret;
}}
"""
    )
    report = run_ptx(text, grid=1, block=128, args=(), events=Recording())
    stream = report.events
    assert stream is not None and not report.incomplete
    for number in range(4):
        own = [i for i, event in enumerate(stream) if event.warp == number]
        issued = [i for i in own if stream[i].op == "wgmma"]
        assert [stream[i].detail["a_in"] for i in issued] == ["smem", "smem", "registers"]
        assert {tuple(stream[i].detail[x] for x in "mnk") for i in issued} == {(64, 8, 16)}
        waits = [stream[i].after for i in own if stream[i].op == "wgmma.wait"]
        assert waits == [tuple(issued[:2]), tuple(issued[2:])]
        assert [stream[i].detail["kind"] for i in own if stream[i].op == "fence"] == ["wgmma"]


def _recorded(text: str | Path, pipeline: str) -> tuple[EventStream, dict[str, int]]:
    kernel = tcir.compile(text, pipeline, target="sm_90a")
    inputs = [np.ones(spec.shape, spec.dtype) for spec in kernel.signature.inputs]
    recording = Recording()
    options = RunOptions(hazards="off", events=recording)
    outcome = run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, options)
    return recording.streams[0], dict(outcome.counters)


@pytest.mark.parametrize(
    ("example", "pipeline"),
    [
        ("matmul.mlir", "gemm"),
        ("resnet50_conv2_3x3.mlir", "conv-implicit-gemm"),
    ],
)
def test_what_is_occupied_is_what_the_machine_counts(example: str, pipeline: str) -> None:
    stream, counters = _recorded(EXAMPLES / example, pipeline)
    line = simulate(stream, C, Surroundings(132))
    assert {span.event for span in line.spans} == set(range(len(stream)))
    ctas = stream.grid[0] * stream.grid[1] * stream.grid[2]
    multiplied = sum(
        2 * event.detail["m"] * event.detail["n"] * event.detail["k"] / 4  # type: ignore[operator]
        for event in stream
        if event.op == "wgmma"
    )
    assert multiplied * ctas == 2 * counters["products"]
    tracks: dict[str, list[tuple[float, float]]] = {}
    for span in line.spans:
        tracks.setdefault(span.track, []).append((span.start, span.end))
    for track, spans in tracks.items():
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(sorted(spans))), track
    time = modelled_time(stream, C, ctas)
    assert "sm_90" in str(time) and time.cycles > 2300


def test_a_report_of_sm_90a_has_the_line_of_roofline_and_model() -> None:
    text = (EXAMPLES / "matmul.mlir").read_text()
    for extent, smaller in (("200", "40"), ("328", "72"), ("136", "24")):
        text = text.replace(f"{extent}x", f"{smaller}x")
    kernel = tcir.compile(text, "gemm", target="sm_90a", validate=True)
    line = kernel.report.roofline
    assert line is not None and line.modelled is not None and line.target == "sm_90"
    assert "; takes " in str(line) and "% of the roofline" in str(line)


def test_the_predictions_are_those_that_their_hash_names() -> None:
    said, name = PREDICTIONS.with_suffix(".sha256").read_text().split()
    assert name == PREDICTIONS.name and said == sha256(PREDICTIONS.read_bytes()).hexdigest()
    document = json.loads(PREDICTIONS.read_text())
    assert document["modelled"] is True and document["target"] == "sm_90a"
    names = [kernel["name"] for kernel in document["kernels"]]
    assert len(names) == len(set(names)) == 51


def test_what_was_counted_judges_the_frozen_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kernels = counted()
    assert all(abs(kernel.error) < 0.071 for kernel in kernels if kernel.name in GREAT)
    for name in ("predictions_sm90a.json", "measured_sm90a.json"):
        (tmp_path / name).write_bytes((PREDICTIONS.parent / name).read_bytes())
    monkeypatch.setattr(time_wgmma, "BENCH", tmp_path)
    text = PREDICTIONS.read_text().replace("40546", "40547")
    (tmp_path / PREDICTIONS.name).write_text(text)
    with pytest.raises(ValueError, match="the hash of predictions"):
        counted()


def test_what_the_page_says_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert section().strip() in (ROOT / "docs/results/time-model.md").read_text(encoding="utf-8")
    by_name = {kernel.name: kernel for kernel in taken()}
    clocks = {
        n: by_name[f"gemm {n} f16"].cycles / (by_name[f"gemm {n} f16"].us - C["launch"]) / 1000
        for n in (2048, 4096, 6144, 8192)
    }
    assert clocks == pytest.approx({2048: 1.68, 4096: 1.48, 6144: 1.49, 8192: 1.48}, abs=0.006)
    kernels = {k["name"]: k for k in json.loads(PREDICTIONS.read_text())["kernels"]}
    for name in time_wgmma._WHY[0][0]:
        large = kernels[name]["cycles_under"]["l2-port=large"]
        assert -0.095 < (large / 1980 + C["launch"]) / by_name[name].us - 1 < 0.065
    monkeypatch.setattr(time_wgmma, "_WHY", time_wgmma._WHY[1:])
    with pytest.raises(ValueError, match="a reason for each miss"):
        section()
