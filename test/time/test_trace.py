"""Traces for Perfetto: the packets are read back and compared with the events of the run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.machine.events import Event, EventStream, Recording
from tcir.opt.command import main as tc_opt
from tcir.program.execution import run_sequence
from tcir.ptxrun.command import main as tc_run
from tcir.run_options import RunOptions
from tcir.time import simulate
from tcir.time.kernels import Gemm
from tcir.time.trace import trace

EXAMPLES = Path(__file__).parents[2] / "examples"
MATMUL = """
func.func @matmul(%a: tensor<Mx256xf16>, %b: tensor<256x128xf16>) -> tensor<Mx128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<Mx128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<Mx128xf32>) -> tensor<Mx128xf32>
  %out = linalg.matmul ins(%a, %b : tensor<Mx256xf16>, tensor<256x128xf16>)
      outs(%init : tensor<Mx128xf32>) -> tensor<Mx128xf32>
  return %out : tensor<Mx128xf32>
}
"""
PRODUCT = MATMUL.replace("Mx", "128x")
KERNELS = {
    "gemm": (PRODUCT, "gemm"),
    "gemm of pairs": (MATMUL.replace("Mx", "256x"), "gemm{cta-group=2}"),
    "gemm, stored by TMA": (PRODUCT, "gemm{store=tma}"),
    "gemm, persistent": (MATMUL.replace("Mx", "256x"), "gemm{persistent=true}"),
    "gemm, parts of K": (PRODUCT, "gemm{split-k=2}"),
    "warps": (PRODUCT, "matmul-warp"),
    "warps, cp.async": (PRODUCT, "matmul-warp{copy=cp.async}"),
    "convolution, shift-reuse": (EXAMPLES / "resnet50_conv2_3x3.mlir", "conv-shift-reuse"),
    "convolution, smem-offset": (EXAMPLES / "resnet50_conv2_3x3.mlir", "conv-smem-offset"),
    "convolution, implicit GEMM": (EXAMPLES / "resnet50_conv2_3x3.mlir", "conv-implicit-gemm"),
    "gemv": (EXAMPLES / "nvfp4_gemv_7168x2048x4.mlir", "gemv-padded-n"),
    "wgmma": (PRODUCT, "gemm", "sm_90a"),
    "wgmma, convolution": (EXAMPLES / "resnet50_conv2_3x3.mlir", "conv-implicit-gemm", "sm_90a"),
    "gemv, SIMT": (EXAMPLES / "nvfp4_gemv_7168x2048x4.mlir", "gemv-simt"),
}
WAITS = ("mbarrier.wait", "tcgen05.wait", "cp.async.wait", "bulk.wait", "wgmma.wait")


@dataclass
class Slice:
    """A slice as the packets give it."""

    track: str
    name: str
    start: int
    end: int = -1
    event: int = -1
    categories: list[str] = field(default_factory=list)


@dataclass
class Read:
    """A trace read back: its root tracks, slices by track, and the two ends of each flow."""

    roots: list[str]
    tracks: dict[str, list[Slice]]
    flows: dict[int, tuple[list[Slice], list[Slice]]]


def read(data: bytes) -> Read:
    """What the packets say; a slice that is not closed, or closed twice, is an error."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    packets = Trace()
    packets.ParseFromString(data)
    names: dict[int, tuple[str, int]] = {}
    found = Read([], defaultdict(list), defaultdict(lambda: ([], [])))
    open_on: dict[int, Slice] = {}
    for packet in packets.packet:
        assert packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in names
            names[track.uuid] = track.name, track.parent_uuid
            if not track.parent_uuid:
                found.roots.append(track.name)
            continue
        event = packet.track_event
        name, parent = names[event.track_uuid]
        assert parent in names  # a slice lies on a track of a launch
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_on, f"{name} overlaps itself"
            notes = {note.name: note.int_value for note in event.debug_annotations}
            one = Slice(f"{parent} {name}", event.name, packet.timestamp)
            one.event, one.categories = notes.get("event", -1), list(event.categories)
            open_on[event.track_uuid] = one
            continue
        assert event.type == TrackEvent.TYPE_SLICE_END
        one = open_on.pop(event.track_uuid)
        one.end = packet.timestamp
        assert one.start <= one.end
        before = found.tracks[one.track]
        assert not before or before[-1].end <= one.start, f"{one.track} overlaps itself"
        before.append(one)
        for flow in event.flow_ids:
            found.flows[flow][0].append(one)
        for flow in event.terminating_flow_ids:
            found.flows[flow][1].append(one)
    assert not open_on
    return found


def recorded(program: str | Path, pipeline: str, target: str = "sm_100a") -> list[EventStream]:
    kernel = tcir.compile(program, pipeline=pipeline, target=target)
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in kernel.signature.inputs]
    recording = Recording()
    options = RunOptions(hazards="off", numerics="fast", events=recording)
    run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, options)
    return recording.streams


def check(streams: list[EventStream], target: str = "sm_100a") -> Read:
    """Every wait ends by what its flow names; nothing else that it waited for ends later."""
    found = read(trace(streams, target))
    assert len(found.roots) == len(streams)
    assert all("modelled" in root and target[:5] in root for root in found.roots)
    assert all(one.categories == ["modelled"] for track in found.tracks.values() for one in track)
    first = 0
    for number, stream in enumerate(streams):
        line = simulate(stream, target)
        flows = [found.flows[first + n] for n in range(1, len(line.flows) + 1)]
        first += len(line.flows)
        check_flows(stream, flows)
        waits = {e for e, event in enumerate(stream) if event.op in WAITS and event.after}
        assert waits <= {sinks[0].event for _, sinks in flows}, number
    assert len(found.flows) == first
    return found


def check_flows(stream: EventStream, flows: list[tuple[list[Slice], list[Slice]]]) -> None:
    for (source, *more), (sink, *others) in flows:
        assert not more and not others
        waits = stream[sink.event]
        assert sink.name == waits.op
        assert source.event in waits.after
        assert source.name == stream[source.event].op
        assert source.start <= sink.end
        if waits.op != "bar.sync":
            assert source.end <= sink.end


@pytest.mark.parametrize(
    "name",
    KERNELS,
)
def test_every_wait_ends_by_the_arrival_that_its_flow_names(name: str) -> None:
    found = check(recorded(*KERNELS[name]), *KERNELS[name][2:])
    text = " ".join(found.tracks)
    if "pipe" in text:
        assert "mma" in text and "barrier 0x" in text
        assert "epilogue" in text or "wgmma" in name


@pytest.mark.parametrize("pair", [False, True])
def test_a_persistent_kernel_written_by_hand(pair: bool) -> None:
    kernel = Gemm("tiles", pair=pair, accumulators=2, store="tiled", columns=32)
    check([kernel.stream(512, tiles=3)])


def test_the_check_sees_a_flow_from_elsewhere() -> None:
    """The trace is of another stream, in which a wait waited for an earlier load."""
    (stream,) = recorded(*KERNELS["gemm"])
    at = [n for n, e in enumerate(stream) if e.op == "mbarrier.wait" and len(e.after) > 1][-1]
    first = next(n for n, e in enumerate(stream) if e.op == "tma.load")
    e = stream[at]
    changed = EventStream(stream, kernel=stream.kernel)
    changed[at] = Event(e.cta, e.warp, e.op, e.detail, (first,), e.line)
    found = read(trace([changed], "sm_100a"))
    with pytest.raises(AssertionError):
        check_flows(stream, list(found.flows.values()))


def test_the_check_sees_a_role_that_overlaps_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer's last operation is said to begin before the one in front of it ends."""
    (stream,) = recorded(*KERNELS["gemm"])
    line = simulate(stream, "sm_100a")
    track = next(
        span.track for span in line.spans if span.name == "tma.load" and "warp" in span.track
    )
    *_, before, last = (n for n, span in enumerate(line.spans) if span.track == track)
    spans = list(line.spans)
    start = (spans[before].start + spans[before].end) / 2
    assert round(start) < round(spans[before].end)
    spans[last] = replace(spans[last], start=start)
    read(trace([stream], "sm_100a"))
    overlapping = replace(line, spans=tuple(spans))
    monkeypatch.setattr("tcir.time.trace.simulate", lambda stream, target: overlapping)
    with pytest.raises(AssertionError, match="overlaps itself"):
        read(trace([stream], "sm_100a"))


def test_launches_follow_one_another() -> None:
    streams = recorded(*KERNELS["gemm"]) * 2
    found = read(trace(streams, "sm_100a"))
    ends: dict[str, list[int]] = defaultdict(list)
    for name, slices in found.tracks.items():
        ends[name.split()[0]] += [slices[0].start, slices[-1].end]
    one, other = sorted(ends.values(), key=min)
    assert max(one) < min(other)


# --- the commands -------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("matmul.mlir").write_text(PRODUCT)
    return tmp_path


def run_opt(*words: str) -> int:
    return tc_opt(["matmul.mlir", "--pipeline=gemm", "--validate-each", *words])


def test_tc_opt_and_tc_run_write_the_same_trace(program: Path, capfd: Any) -> None:
    assert run_opt("--emit=ptx", "-o", "k.ptx", "--trace=opt.pftrace") == 0
    np.save("a.npy", np.ones((128, 256), np.float16))
    np.save("b.npy", np.ones((256, 128), np.float16))
    words = ["k.ptx", "--arg", "a.npy", "--arg", "b.npy", "--out", "c.npy", "--trace=run.pftrace"]
    assert tc_run(words) == 0
    assert (np.load("c.npy") == 256).all()
    one, other = (read((program / f"{name}.pftrace").read_bytes()) for name in ("opt", "run"))
    assert dict(one.tracks) == dict(other.tracks)
    assert one.roots == other.roots


def test_a_trace_needs_a_run_of_the_ptx(program: Path) -> None:
    for words in (["--emit=ptx"], ["--validate-each"], ["--validate-each", "--emit=llvm"]):
        with pytest.raises(tcir.Error, match="--trace: expected --validate-each and --emit=ptx"):
            tc_opt(["matmul.mlir", "--pipeline=gemm", "--trace=t.pftrace", *words])


def refused(capsys: Any, *words: str) -> str:
    Path("k.ptx").write_text(KERNEL)
    assert tc_run(["k.ptx", "--grid=1", *words]) == 3
    return str(capsys.readouterr().err)


KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() .reqntid 32 { .reg .b32 %r; mov.u32 %r, %tid.x; BODY ret; }
"""


def test_what_cannot_be_written_is_refused_before_the_run(
    program: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(capsys, "--trace=nowhere/t.pftrace")
    assert "--trace nowhere/t.pftrace: there is no directory 'nowhere'" in said
    assert "--trace: expected a file name" in refused(capsys, "--trace=")
    said = refused(capsys, "--trace=t.pftrace", "--interactive")
    assert "--trace: expected no --interactive" in said
    Path("k.ptx").write_text(KERNEL.replace("BODY", "").replace("sm_100a", "sm_89"))
    assert tc_run(["k.ptx", "--grid=1", "--trace=t.pftrace"]) == 3
    assert "expected target sm_80, sm_90, sm_100a" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    Path("k.ptx").write_text(KERNEL.replace("BODY", ""))
    assert tc_run(["k.ptx", "--grid=1", "--trace=t.pftrace"]) == 3
    said = capsys.readouterr().err
    assert "pip install 'tcir[trace]'" in said
    assert not Path("t.pftrace").exists()


def test_a_run_that_does_not_end_has_no_trace(program: Path, capsys: Any) -> None:
    Path("k.ptx").write_text(KERNEL.replace("BODY", "trap;"))
    assert tc_run(["k.ptx", "--grid=1", "--trace=t.pftrace"]) == 1
    assert "t.pftrace is not written: the run did not end" in capsys.readouterr().err
    assert not Path("t.pftrace").exists()
