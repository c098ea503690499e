"""What shift-reuse saves and costs beside implicit GEMM: counted by the machine from the PTX.

The predictions are worked out here from the shapes alone. ``pytest -s`` prints the table that
docs/explanation/convolution.md shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil

import numpy as np
import pytest

import tcir

from .linalg_text import Conv
from .oracle import convolution, operands

SAME_3x3 = (1, 1, 1, 1)
LAYERS = [
    Conv(1, 56, 56, 64, 64, 3, 3, SAME_3x3),
    Conv(1, 28, 28, 128, 128, 3, 3, SAME_3x3),
    Conv(3, 11, 13, 40, 24, 3, 3, SAME_3x3),
]
PIPELINES = ("conv-shift-reuse", "conv-implicit-gemm")
LANES, QUARTER, ELEMENT, MMA_K = 128, 32, 2, 16
SMEM_BYTES_PER_CYCLE = 128


@dataclass(frozen=True)
class Costs:
    """Bytes and cycles of one kernel launch."""

    activations: int
    filters: int
    to_tmem: int
    to_tensor: int
    cycles: int


@cache
def counted(layer: Conv, pipeline: str) -> tuple[bytes, Costs]:
    """The result, and what the machine counted; the input is the tensor bound first."""
    x, w = operands(layer, 5)
    want = convolution(layer, x, w)
    out = np.zeros_like(want)
    c = tcir.compile(layer.text(), pipeline)(x, w, out).counters
    assert out.tobytes() == want.tobytes()
    assert c["global_to_shared"] == c["global_to_shared_0"] + c["global_to_shared_1"]
    costs = Costs(
        c["global_to_shared_0"],
        c["global_to_shared_1"],
        c["shared_to_tmem"],
        c["shared_to_tensor"],
        c["tensor_cycles"],
    )
    return out.tobytes(), costs


def predicted(layer: Conv, pipeline: str) -> Costs:
    """The same from the shapes. One CTA: 128 lanes; one K_out tile; k steps of one swizzle span."""
    shift = pipeline == "conv-shift-reuse"
    span = next(s for s in (32, 64, 128, 1 << 30) if layer.c * ELEMENT <= s or s == 128)
    channels = ceil(layer.c * ELEMENT / span) * span // ELEMENT
    n = ceil(layer.k / 16) * 16
    panel = next(s for s in (32, 64, 128) if n * ELEMENT <= s or s == 128) // ELEMENT
    pixels = layer.n * layer.p * layer.q
    valid = QUARTER - (layer.s - 1)
    units = layer.n * layer.p * ceil(layer.q / valid)
    ctas = ceil(units / 4) if shift else ceil(pixels / LANES)
    taps = layer.r * layer.s
    slabs = layer.r if shift else taps  # times that a CTA loads its 128 pixels
    instructions = ctas * taps * channels // MMA_K
    activations = ctas * slabs * LANES * channels * ELEMENT
    b_bytes = n * MMA_K * ELEMENT
    a_bytes = 0 if shift else LANES * MMA_K * ELEMENT
    return Costs(
        activations=activations,
        filters=ctas * taps * channels * ceil(n / panel) * panel * ELEMENT,
        to_tmem=activations if shift else 0,
        to_tensor=instructions * (a_bytes + b_bytes),
        cycles=instructions * max(n // 2, (a_bytes + b_bytes) // SMEM_BYTES_PER_CYCLE),
    )


def predicted_ratio(layer: Conv) -> float:
    """Activation bytes of shift-reuse over those of implicit GEMM.

    A pixel is loaded once per filter row instead of once per tap (1/S: stride 1 has one class);
    only V = 32 - (S - 1) of a quarter's lanes count; and ends of rows and of the grid leave lanes
    without an output in either schedule.
    """
    pixels = layer.n * layer.p * layer.q
    valid = QUARTER - (layer.s - 1)
    slots = 4 * ceil(layer.n * layer.p * ceil(layer.q / valid) / 4)
    efficiency = pixels / (slots * valid)
    efficiency_gemm = pixels / (LANES * ceil(pixels / LANES))
    return (1 / layer.s) * (QUARTER / valid) / (efficiency / efficiency_gemm)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_both_schedules_agree_bit_for_bit(layer: Conv) -> None:
    (ours, _), (gemm, _) = (counted(layer, name) for name in PIPELINES)
    assert ours == gemm


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_counts_are_as_predicted(layer: Conv) -> None:
    print(f"\n{layer.name:<52} {'counted':>12} {'predicted':>12}")
    for pipeline in PIPELINES:
        _, costs = counted(layer, pipeline)
        for name, want in vars(predicted(layer, pipeline)).items():
            got = getattr(costs, name)
            print(f"  {pipeline:<30} {name:<20} {got:>12} {want:>12}")
            assert got == pytest.approx(want, rel=0.01), name


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_ratio_of_activation_bytes_is_as_predicted(layer: Conv) -> None:
    (_, ours), (_, gemm) = (counted(layer, name) for name in PIPELINES)
    ratio = ours.activations / gemm.activations
    print(f"\n{layer.name}: activations {ratio:.4f}, predicted {predicted_ratio(layer):.4f}")
    assert ratio == pytest.approx(predicted_ratio(layer), rel=0.01)
    assert ours.to_tmem == ours.activations  # every loaded byte is copied once
    print(f"cycles x{gemm.cycles / ours.cycles:.3f}", end="")
    copy = ours.to_tmem // SMEM_BYTES_PER_CYCLE
    feed = (ours.to_tensor + ours.to_tmem) // SMEM_BYTES_PER_CYCLE
    print(f"; with copies overlapped x{gemm.cycles / max(ours.cycles, feed):.3f}", end="")
    print(f", not overlapped x{gemm.cycles / (ours.cycles + copy):.3f}")
