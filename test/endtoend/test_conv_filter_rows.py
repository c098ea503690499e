"""Convolutions of few channels read the pixels of a filter row at once: overlapping windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir

from .linalg_text import Conv
from .oracle import convolution, integers, operands
from .test_matmul_warp_breaks import Break

PIPELINE = "conv-implicit-gemm"
STEM = Conv(1, 12, 18, 3, 16, 7, 7, (3, 3, 3, 3), strides=(2, 2), out="f16")
CASES = [
    Conv(2, 9, 11, 3, 24, 3, 3, (1, 1, 1, 1), element="bf16"),  # 8 channels, stride 1
    Conv(1, 19, 23, 3, 16, 11, 11, (2, 2, 2, 2), strides=(4, 4)),  # two steps a row
    Conv(1, 8, 16, 1, 8, 5, 5, (2, 2, 2, 2), strides=(2, 2)),
    Conv(1, 9, 10, 4, 16, 3, 3, strides=(2, 2)),  # as it is in memory
    Conv(1, 9, 13, 8, 16, 3, 3),  # so at stride 1
    Conv(1, 9, 14, 2, 16, 1, 4, (0, 0, 1, 3), strides=(1, 2), dilations=(1, 1)),
    Conv(1, 17, 15, 3, 72, 3, 3, (2, 2, 1, 1), strides=(1, 2), dilations=(2, 1), filter="fhwc"),
    Conv(3, 6, 7, 3, 16, 2, 2, generic=True),
]


@pytest.mark.parametrize(
    ("conv", "target"),
    [(conv, target) for conv in [STEM, *CASES] for target in ("sm_90a", "sm_100a")],
    ids=str,
)
def test_every_level(conv: Conv, target: str) -> None:
    kernel = tcir.compile(conv.text(), PIPELINE, target=target, validate=True, orders=2)
    kernel.report.check()
    x, w = operands(conv)
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


def test_a_row_of_taps_is_a_step() -> None:
    """What TMA loads for the only tile, of 54 pixels: 7 steps of 64 bytes a pixel, not 49 of 32."""
    kernel = tcir.compile(STEM.text(), PIPELINE, target="sm_90a")
    x, w = np.ones((1, 12, 18, 3), "f2"), np.ones((7, 7, 3, 16), "f2")
    outcome = kernel(x, w, np.zeros((1, 6, 9, 16), "f2"))
    assert outcome.counters["tma_loads"] == 7 * 2
    assert outcome.counters["global_to_shared_0"] == 7 * 64 * 64


def test_what_is_not_read_does_not_matter() -> None:
    """A tap that the windows have beyond the filter is no product, of infinities neither."""
    kernel = tcir.compile(STEM.text(), PIPELINE, target="sm_90a")
    x_shape, w_shape, out_shape = STEM.shapes
    x, w = integers(x_shape, "f16", 1), integers(w_shape, "f16", 2)
    x[0, 5, 9, 1] = np.inf
    out = np.zeros(out_shape, np.float16)
    kernel(x, np.abs(w) + 1, out)
    reads = {
        (p, q)
        for p in range(6)
        for q in range(9)
        if 0 <= 5 - (2 * p - 3) < 7 and 0 <= 9 - (2 * q - 3) < 7
    }
    assert {(int(p), int(q)) for _, p, q, _ in np.argwhere(~np.isfinite(out))} == reads
    assert not np.isnan(out).any()


@pytest.mark.parametrize("pipeline", ["conv", "layers"])
def test_where_tensor_memory_is_missing(pipeline: str) -> None:
    """The other schedules of sm_100a need channels of 16 bytes."""
    windows = (28, 9, 12, 1)
    assert windows in extents(tcir.compile(STEM.text(), pipeline, target="sm_90a"))
    assert windows not in extents(tcir.compile(STEM.text(), pipeline))


def extents(kernel: tcir.Kernel) -> list[Any]:
    """Of the tensor maps."""
    params = [p for launch in kernel.launches.launches for p in launch.params]
    return [tuple(p["dims"]) for p in params if p["kind"] == "tensor_map"]


# --- breaks --------------------------------------------------------------------------------------


def array(name: str, values: list[int]) -> Any:
    def change(op: Any) -> None:
        if name in op.attributes and len(op.attributes[name]) == len(values):
            op.attributes[name] = ir.DenseI64ArrayAttr.get(values, op.context)

    return change


def map_strides(op: Any) -> None:
    """Windows of neighbouring outputs a pixel apart, not two."""
    if str(op.attributes["mode"]) == '"im2col"':
        first, *rest = list(op.attributes["strides"])
        assert first == 16
        op.attributes["strides"] = ir.DenseI64ArrayAttr.get([2 * first, *rest], op.context)


BREAKS = {
    "padding at the end": ("fold-filter-rows", Break("tc.repack", array("low", [0, 0, 0, 0]))),
    "padding of rows not dropped": (
        "fold-filter-rows",
        Break("tc.conv2d", array("pads", [3, 3, 1, 0])),
    ),
    "every other window": ("tile-conv-implicit-gemm", Break("tc.make_tensor_map", map_strides)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen(name: str) -> None:
    after, broken = BREAKS[name]
    pipeline = tcir.named_pipeline(PIPELINE).insert(broken, after=after)
    try:
        report = tcir.compile(STEM.text(), pipeline, target="sm_90a", validate=True).report
    except tcir.Error as error:
        assert "break" in str(error)  # the verifier behind the break
        return
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)
