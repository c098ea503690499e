"""The model on events that the machine records of compiled kernels."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.machine.events import EventStream, Recording
from tcir.program.execution import run_sequence
from tcir.run_options import RunOptions
from tcir.time import Constants, Surroundings, modelled_time, simulate

C = Constants("sm_100a")
ONE_PORT = Constants("sm_100a", {"l2-port-large": "best"})
"""Loads pass the port at one rate, whatever the size of their stage."""


def _matmul(m: int, n: int, k: int) -> str:
    return f"""
func.func @matmul(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %out = linalg.matmul ins(%a, %b : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>)
      outs(%init : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %out : tensor<{m}x{n}xf32>
}}
"""


def _recorded(program: str, pipeline: str) -> tuple[EventStream, dict[str, Any]]:
    kernel = tcir.compile(program, pipeline=pipeline)
    inputs = [np.ones(spec.shape, spec.dtype) for spec in kernel.signature.inputs]
    recording = Recording()
    options = RunOptions(hazards="off", events=recording)
    outputs = kernel.signature.outputs
    outcome = run_sequence(kernel.ptx, kernel.launches, inputs, outputs, options)
    return recording.streams[0], dict(outcome.counters)


@pytest.mark.parametrize(
    ("size", "pipeline"),
    [
        ((128, 128, 1024), "gemm"),
        ((256, 256, 512), "gemm{cta-group=2}"),
        ((128, 128, 1024), "gemm{store=tma}"),
        ((256, 512, 512), "gemm{persistent=true}"),
        ((128, 256, 256), "matmul-warp"),
    ],
)
def test_what_is_occupied_is_what_the_machine_counts(
    size: tuple[int, int, int], pipeline: str
) -> None:
    stream, counters = _recorded(_matmul(*size), pipeline)
    line = simulate(stream, ONE_PORT, Surroundings(148))
    clusters = prod(stream.grid) // len(stream.ctas)
    tensor = [share * line.cycles for name, share in line.limits.items() if "tensor pipe" in name]
    assert sum(tensor) * clusters == pytest.approx(counters["tensor_cycles"])
    loads = [
        share * line.cycles for name, share in line.limits.items() if name.endswith("L2 to SM")
    ]
    loaded = counters["global_to_shared"] + counters["global_load"]
    assert sum(loads) * clusters * C["l2-port"] == pytest.approx(loaded)
    assert {span.event for span in line.spans} == set(range(len(stream)))
    tracks: dict[str, list[tuple[float, float]]] = {}
    for span in line.spans:
        tracks.setdefault(span.track, []).append((span.start, span.end))
    for track, spans in tracks.items():
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(sorted(spans))), track


def test_every_wait_ends_by_the_arrival_that_its_flow_names() -> None:
    stream, _ = _recorded(_matmul(128, 128, 512), "gemm")
    line = simulate(stream, C)
    sinks = {line.spans[flow.sink].event: flow for flow in line.flows}
    waits = [i for i, e in enumerate(stream) if e.op == "mbarrier.wait" and e.after]
    assert waits and set(waits) <= set(sinks)
    for index in waits:
        source = line.spans[sinks[index].source]
        assert source.event in stream[index].after
        assert source.start < line.spans[sinks[index].sink].end


def test_a_deeper_k_takes_the_cycles_of_its_stages() -> None:
    """Beside other SMs a stage of 128 x 128 x 64 is bound by its 32 KiB from L2, alone too."""
    short, long = (
        simulate(
            _recorded(_matmul(128, 128, k), "gemm{n-tile=128 stages=6}")[0], C, Surroundings(148)
        ).cycles
        for k in (1024, 2048)
    )
    assert long - short == pytest.approx(16 * 32768 / 81, rel=0.02)


def test_the_modelled_order_of_schedules_is_that_of_public_ladders() -> None:
    """One CTA, pairs, persistent pairs: each faster than the one before (4096³)."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
    from time_events import modelled, streams, unique_bytes

    times = []
    for pipeline in ("gemm{n-tile=128}", "gemm{cta-group=2}", "gemm{cta-group=2 persistent=true}"):
        kernel = tcir.compile(_matmul(4096, 4096, 4096), pipeline=pipeline)
        (stream,) = streams(kernel)
        times.append(modelled(stream, C, unique_bytes(kernel)).microseconds)
    assert times == sorted(times, reverse=True)
    tiles = -(-256 // 74)  # of 256 x 256, for each pair of SMs
    least = tiles * 4096 / 16 * 128 / C["clock"] / 1000
    assert least < times[-1] < 1.1 * least


def test_the_time_of_a_launch_grows_with_its_waves() -> None:
    stream, _ = _recorded(_matmul(128, 128, 512), "gemm")
    per_wave = 148 * modelled_time(stream, C, 1).residents
    one, two = (modelled_time(stream, C, n) for n in (per_wave, per_wave + 1))
    assert (one.waves, two.waves) == (1, 2) and one.cycles < two.cycles < 2 * one.cycles
