"""C and K that TMA cannot encode: repacked by kernels of the module, by every schedule."""

from __future__ import annotations

import numpy as np
import pytest

import tcir

from .linalg_text import Conv
from .oracle import convolution, integers

PADS = (0, 1, 1, 1)
CASES = [
    Conv(1, 4, 9, 3, 17, 2, 3, PADS),
    Conv(1, 4, 9, 17, 16, 2, 3, PADS, filter="fhwc", out="f16"),
    Conv(1, 4, 9, 16, 17, 2, 3, PADS),
    Conv(1, 4, 9, 17, 17, 2, 3, PADS, element="f8E4M3FN"),
    Conv(2, 4, 9, 3, 16, 2, 3, PADS, element="f8E5M2", strides=(1, 2)),
    Conv(1, 4, 9, 3, 17, 2, 3, PADS, element="i8", out="i32"),
    Conv(1, 4, 9, 17, 17, 2, 3, PADS, element="u8", w_element="i8", out="i32", filter="fhwc"),
    Conv(1, 4, 9, 3, 17, 2, 3, PADS, element="f32", filter="fhwc"),
    Conv(1, 4, 9, 17, 17, 2, 3, PADS, element="f32"),
    Conv(1, 4, 9, 8, 17, 2, 3, PADS, element="f32"),
]
PIPELINES = ("conv", "conv-shift-reuse", "conv-implicit-gemm", "conv-smem-offset")


EACH = [
    pytest.param(conv, pipeline, id=f"{pipeline}-{conv.name}")
    for conv in CASES
    for pipeline in PIPELINES
]
"""All cases by all schedules."""


def repacked(conv: Conv) -> tuple[int, int]:
    """Bytes that repacking reads and writes: rows of 16 bytes, the filter's with C last."""
    x_shape, w_shape, _ = conv.shapes
    size = {"f16": 2, "f32": 4}.get(conv.element, 1)
    unit = 16 // size
    padded = -(-conv.c // unit) * unit
    weights = int(np.prod(w_shape)), conv.k * conv.r * conv.s * padded
    images = (int(np.prod(x_shape)), conv.n * conv.h * conv.w * padded)
    moved = [weights] if conv.c == padded else [images, weights]
    return size * sum(read for read, _ in moved), size * sum(written for _, written in moved)


@pytest.mark.parametrize(("conv", "pipeline"), EACH)
def test_bytes_and_bits(conv: Conv, pipeline: str) -> None:
    x, w = (integers(s, e, i) for i, (s, e) in enumerate(zip(conv.shapes[:2], conv.elements)))
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    report = tcir.compile(conv.text(), pipeline)(x, w, out)
    assert out.tobytes() == want.tobytes()
    assert not report.findings
    read, written = repacked(conv)
    assert report.counters["global_load"] == read
    assert report.counters["global_store"] == written + want.nbytes


@pytest.mark.parametrize(("conv", "pipeline"), EACH)
def test_every_level(conv: Conv, pipeline: str) -> None:
    report = tcir.validate(conv.text(), pipeline, orders=1, seed=3)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)


FILTER = Conv(1, 4, 9, 8, 40, 2, 3, PADS, element="f32")


@pytest.mark.parametrize(
    "pipeline",
    [
        "conv-implicit-gemm",
        *(name for name in PIPELINES if "implicit" not in name),
    ],
)
def test_f32_filters_are_read_where_they_are(pipeline: str) -> None:
    """hwcf has K innermost: MN-major tiles, by the swizzle of 32-byte atoms."""
    kernel = tcir.compile(FILTER.text(), pipeline, validate=True, orders=1, seed=3)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, str(
        kernel.report
    )
    assert len(kernel.launches.launches) == 1


BYTES = {"i8": "i32", "f8E4M3FN": "f32", "f32": "f32"}
"""Types that wgmma reads with their channels last only, and those of results."""


@pytest.mark.parametrize("element", BYTES)
@pytest.mark.parametrize(("c", "k"), [(32, 16), (32, 17), (17, 16)])
def test_wgmma_reads_filters_with_outputs_last(c: int, k: int, element: str) -> None:
    """Their rows may be encodable (c, k = 32, 16): the filter is repacked all the same."""
    conv = Conv(1, 4, 9, c, k, 2, 3, PADS, element=element, out=BYTES[element])
    x, w = (integers(s, e, i) for i, (s, e) in enumerate(zip(conv.shapes[:2], conv.elements)))
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    kernel = tcir.compile(conv.text(), "conv", target="sm_90a")
    assert not kernel(x, w, out).findings
    assert out.tobytes() == want.tobytes()
    assert "wgmma" in kernel.ptx
