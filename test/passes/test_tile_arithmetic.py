"""Sizes that the passes choose, against their definitions by enumeration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir._mlir import ir
from tcir.errors import PassError
from tcir.passes.conv.im2col import im2col_corners
from tcir.passes.conv.rows import RowsTiling
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.shift_classes import ShiftClasses
from tcir.passes.emit.limits import tmem_allocation
from tcir.passes.emit.operand_tiles import k_step, swizzle_for
from tcir.passes.emit.tile_kernel import choose_n_tile
from tcir.passes.pipelining.multi_buffer import MOST_STAGES, choose_stages

from .linalg_programs import lower, named, ops

SIZES = st.integers(1, 70)


def shape(**sizes: Any) -> ConvShape:
    """A convolution with some sizes set."""
    base: dict[str, Any] = dict.fromkeys("nhwcrspqk", 1)
    base |= {"strides": (1, 1), "dilations": (1, 1), "filter": "hwcf", "element": None}
    base |= {"stored_bytes": 4, "epilogue_reads": 0}
    base |= {f"pad_{side}": 0 for side in ("top", "bottom", "left", "right")}
    return ConvShape(**(base | sizes))


STEPS = st.integers(1, 3)


def rows_tiling(**sizes: Any) -> RowsTiling:
    conv = shape(**sizes)
    return RowsTiling(conv, ShiftClasses.of(conv))


@given(n=st.integers(1, 4), p=st.integers(1, 6), q=SIZES, s=st.integers(1, 7), sw=STEPS, dw=STEPS)
def test_units_cover_every_output_once(n: int, p: int, q: int, s: int, sw: int, dw: int) -> None:
    tiling = rows_tiling(n=n, p=p, q=q, s=s, strides=(1, sw), dilations=(1, dw))
    step, valid = tiling.classes.column_step, tiling.classes.valid
    stored = []
    for unit in range(tiling.ctas * 4):
        image, row, first = tiling.decode(unit)
        assert isinstance(first, int) and isinstance(image, int)
        # what is stored: the first `valid` lanes, inside the tensor
        lanes = range(first, min(first + step * valid, q), step) if image < n else range(0)
        stored += [(image, row, column) for column in lanes]
    assert sorted(stored) == [(a, b, c) for a in range(n) for b in range(p) for c in range(q)]


@given(s=st.integers(1, 32), sw=STEPS, dw=STEPS)
def test_shifted_lanes_hold_the_pixels_of_their_taps(s: int, sw: int, dw: int) -> None:
    """By definition: output ``q0 + dq * i`` sees column ``q * sw + tap * dw`` at each tap."""
    classes = ShiftClasses.of(shape(s=s, strides=(1, sw), dilations=(1, dw)))
    assert sorted(tap for taps in classes.taps for tap in taps) == list(range(s))
    for first, taps in enumerate(classes.taps):
        column = [first * dw + classes.lane_step * i for i in range(32)]
        for tap in taps:
            for i in range(classes.valid):
                assert column[i] == classes.column_step * i * sw + tap * dw
            column = [*column[1:], column[31]]
    if classes.valid < 32:  # one more lane would be stale
        most = max(classes.taps, key=len)
        lanes = [min(i + len(most) - 1, 31) for i in range(32)]
        assert lanes[classes.valid] != classes.valid + len(most) - 1


@given(
    w=st.integers(1, 40),
    s=st.integers(1, 5),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 3),
    left=st.integers(0, 4),
    right=st.integers(0, 4),
)
def test_im2col_box_holds_one_position_per_output(
    w: int, s: int, stride: int, dilation: int, left: int, right: int
) -> None:
    q = (w + left + right - (s - 1) * dilation - 1) // stride + 1
    if q < 1:
        return
    conv = shape(
        w=w, s=s, q=q, strides=(1, stride), dilations=(1, dilation), pad_left=left, pad_right=right
    )
    lower_w, _, upper_w, _ = im2col_corners(conv)
    positions = range(lower_w, w - 1 + upper_w + 1, stride)
    assert list(positions) == [column * stride - left for column in range(q)]


@pytest.mark.parametrize(
    ("channels", "step", "mode"),
    [(8, 16, "32B"), (16, 16, "32B"), (24, 32, "64B"), (32, 32, "64B"), (40, 64, "128B"),
     (64, 64, "128B"), (512, 64, "128B")],
)  # fmt: skip
def test_k_step(channels: int, step: int, mode: str) -> None:
    assert k_step(channels, 2) == step
    assert swizzle_for(step, 2) == mode


@pytest.mark.parametrize(
    ("columns", "allocated"), [(1, 32), (32, 32), (33, 64), (160, 256), (257, 512), (512, 512)]
)
def test_tmem_allocation(columns: int, allocated: int) -> None:
    assert tmem_allocation(columns) == allocated


KB = 1024


@pytest.mark.parametrize(
    ("trips", "stage", "fixed", "columns", "fixed_columns", "expected"),
    [
        (3, 40 * KB, 0, 32, 64, 2),  # two CTAs share the SM
        (9, 40 * KB, 0, 32, 64, 2),
        (9, 64 * KB, 0, 32, 128, 3),  # two stages would not fit twice
        (9, 8 * KB, 0, 32, 64, 6),  # tensor memory of two CTAs: (256 - 64) / 32
        (2, 8 * KB, 0, 0, 64, 2),  # no more than iterations
        (1, 200 * KB, 0, 32, 64, 1),
        (50, 1 * KB, 0, 0, 64, MOST_STAGES),
        (50, 16 * KB, 0, 32, 256, MOST_STAGES),  # one CTA has all of tensor memory
        (9, 226 * KB, 0, 0, 64, 1),
        (9, 500 * KB, 0, 0, 64, 1),  # nothing fits: plan-memory says so
    ],
)
def test_choose_stages(
    trips: int, stage: int, fixed: int, columns: int, fixed_columns: int, expected: int
) -> None:
    assert choose_stages(trips, stage, fixed, columns, fixed_columns) == expected


def test_n_tile() -> None:
    module = lower(named("matmul", ["8x8", "8x8", "8x8"]), "raise-to-tc")
    (op,) = ops(module, "tc.matmul")
    assert [choose_n_tile(op, 0, k) for k in (8, 16, 17, 64, 128, 144, 192, 200, 512)] == [
        16, 16, 32, 64, 128, 80, 96, 112, 128,
    ]  # fmt: skip
    assert [choose_n_tile(op, n, 512) for n in (16, 48, 240, 256)] == [16, 48, 240, 256]
    for wrong in (8, 20, 272, 300, -16):
        with pytest.raises(PassError, match=rf"multiple of 16 in \[16, 256\], got {wrong} "):
            choose_n_tile(op, wrong, 512)


@pytest.mark.parametrize(
    "passes",
    [
        "tile-conv-shift-reuse",
        "tile-conv-implicit-gemm",
        "tile-conv-shift-reuse,multi-buffer,place-barriers,plan-memory,assign-roles",
    ],
)
def test_every_op_keeps_the_location_of_the_contraction(passes: str) -> None:
    text = named("conv_2d_nhwc_hwcf", ["1x9x9x64", "3x3x64x24", "1x7x7x24"])
    line = 1 + text[: text.index("linalg.conv")].count("\n")
    module = lower(text, f"raise-to-tc,{passes}")
    strange = []

    def visit(op: Any) -> Any:
        if op.name not in ("builtin.module", "func.func") and f":{line}:" not in str(op.location):
            strange.append(str(op))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert not strange
