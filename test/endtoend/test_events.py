"""Events of compiled kernels: every wait names all that its phase needed, every mma its commit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.machine import Assumptions
from tcir.machine.events import EventStream, Recording
from tcir.program.execution import run_sequence
from tcir.run_options import RunOptions

EXAMPLES = Path(__file__).parents[2] / "examples"
MATMUL = """
func.func @matmul(%a: tensor<256x320xf16>, %b: tensor<320x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %out = linalg.matmul ins(%a, %b : tensor<256x320xf16>, tensor<320x256xf16>)
      outs(%init : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %out : tensor<256x256xf32>
}
"""

CASES = {
    "gemm": (MATMUL, "gemm{n-tile=128}"),
    "gemm of pairs": (MATMUL, "gemm{cta-group=2}"),
    "gemm of a cluster": (MATMUL, "gemm{cluster=2x1}"),
    "gemm, persistent": (MATMUL, "gemm{persistent=true}"),
    "gemm, stored by TMA": (MATMUL, "gemm{store=tma}"),
    "warps": (MATMUL, "matmul-warp"),
    "convolution": (EXAMPLES / "resnet50_conv2_3x3.mlir", "conv-shift-reuse"),
    "gemv": (EXAMPLES / "nvfp4_gemv_7168x2048x4.mlir", "gemv-padded-n"),
}


def recorded(program: str | Path, pipeline: str, **options: Any) -> list[EventStream]:
    """The stream of the first cluster of each launch; inputs differ everywhere."""
    kernel = tcir.compile(program, pipeline=pipeline)
    inputs = []
    for number, spec in enumerate(kernel.signature.inputs):
        array = np.zeros(spec.shape, spec.dtype)
        array.view(np.uint8).reshape(-1)[...] = np.arange(array.nbytes) % (37 + number)
        inputs.append(array)
    recording = Recording()
    chosen = RunOptions(hazards="off", numerics="fast", events=recording, **options)
    outcome = run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, chosen)
    assert not outcome.incomplete
    assert len(recording.streams) == len(kernel.launches.launches)
    return recording.streams


def check(stream: EventStream) -> None:
    """What holds of any kernel."""
    assert set(stream.ctas) == {event.cta for event in stream}
    position: dict[tuple[int, int], int] = {}
    for index, event in enumerate(stream):
        before = position.get((event.cta, event.warp), -1)
        position[event.cta, event.warp] = index
        assert before < index
        later = [i for i in event.after if i >= index]
        assert all(stream[i].op == event.op == "bar.sync" for i in later)
    for event in stream:
        if event.op == "mbarrier.wait":
            check_wait(stream, event.after, event.detail["barrier"])
    check_pipe(stream)


def check_wait(stream: EventStream, after: tuple[int, ...], barrier: int | str) -> None:
    """All that arrived did so at its mbarrier; a phase of loads has its announcement."""
    causes = [stream[i] for i in after]
    assert {cause.op for cause in causes} <= {
        "mbarrier.arrive",
        "tcgen05.commit",
        "tma.load",
        "bulk.load",
    }
    offsets = {int(cause.detail["barrier"]) & 0xFFFFFF for cause in causes}
    assert offsets <= {int(barrier) & 0xFFFFFF}
    if any(cause.op.endswith("load") for cause in causes):
        assert any(cause.op == "mbarrier.arrive" for cause in causes)


def check_pipe(stream: EventStream) -> None:
    """Every operation of the tensor core and of tensor memory is waited for, in program order."""
    for issued, waits in (
        (("tcgen05.mma", "tcgen05.cp", "tcgen05.shift"), "tcgen05.commit"),
        (("tcgen05.ld", "tcgen05.st"), "tcgen05.wait"),
        (("wgmma",), "wgmma.wait"),
    ):
        own = {i for i, event in enumerate(stream) if event.op in issued}
        waited = {i for event in stream if event.op == waits for i in event.after}
        assert waited == own, (waits, own ^ waited)


@pytest.mark.parametrize("name", ["gemm", *(n for n in CASES if n != "gemm")])
def test_every_wait_names_what_ended_it(name: str) -> None:
    streams = recorded(*CASES[name])
    for stream in streams:
        check(stream)
        ops = Counter(event.op for event in stream)
        assert ops["exit"] == len(stream.ctas) * stream.block[0] // 32
    assert any(e.op == "mbarrier.wait" and e.after for stream in streams for e in stream)


def test_the_loop_of_a_gemm() -> None:
    """K = 320 is five steps of 64: loads of 16 KiB of A and of B, four mma, a commit."""
    (stream,) = recorded(*CASES["gemm"])
    ops = Counter(e.op for e in stream)
    assert (ops["tcgen05.mma"], ops["tcgen05.commit"]) == (20, 6)
    loads = [e for e in stream if e.op == "tma.load"]
    assert sum(int(e.detail["bytes"]) for e in loads) == 5 * 2 * 128 * 64 * 2
    assert {e.detail["inner_bytes"] for e in loads} == {128}
    mma = next(e for e in stream if e.op == "tcgen05.mma")
    assert mma.detail == {
        "m": 128, "n": 128, "k": 16, "kind": "f16", "cta_group": 1, "a_in": "smem",
    }  # fmt: skip
    full = [e for e in stream if e.op == "mbarrier.wait" and len(e.after) > 1]
    for wait in full:
        nbytes = sum(int(stream[i].detail.get("bytes", 0)) for i in wait.after)
        assert nbytes == 2 * 128 * 64 * 2
    assert sum(int(e.detail["bytes"]) for e in stream if e.op == "st.global") == 128 * 128 * 4


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_events_in_another_order(seed: int) -> None:
    """What a wait waited for does not depend on the order in which operations complete."""
    placed = Assumptions(shared_start="reserved")  # mbarriers are named by their addresses
    (first,), (second,) = (
        recorded(*CASES["gemm"], order_seed=s, assumptions=placed) for s in (None, seed)
    )
    assert names(first) == names(second)


def names(stream: EventStream) -> dict[tuple[int, int], list[Any]]:
    """The events of each warp, and those that they waited for, by place in their warps."""
    places: dict[int, tuple[int, int, int]] = {}
    found: dict[tuple[int, int], list[Any]] = {}
    for index, event in enumerate(stream):
        own = found.setdefault((event.cta, event.warp), [])
        places[index] = (event.cta, event.warp, len(own))
        own.append(index)
    return {
        warp: [
            (stream[i].op, dict(stream[i].detail), {places[j] for j in stream[i].after})
            for i in own
        ]
        for warp, own in found.items()
    }
