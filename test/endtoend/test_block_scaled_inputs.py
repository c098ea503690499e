"""Wrong block-scaled programs and arrays: each is refused by name, or has a documented result."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.errors import Error, InputError

from .block_scaled_oracle import DTYPES, inputs_of
from .block_scaled_text import F4, F8A, UE8M0, BlockScaled

PROGRAMS = {
    "K not a multiple of the block": (
        BlockScaled(k=64).op().replace("x64x", "x56x").replace("<64x", "<56x"),
        "a multiple of the block 16, got 56 and 56: a scale belongs to 16 values; pad both",
    ),
    "different K": (
        BlockScaled(k=64).op().replace("<64xf4", "<80xf4").replace("tensor<4xf8", "tensor<5xf8"),
        "a and b must have the same K, a multiple of the block 16, got 64 and 80",
    ),
    "too few scales": (
        BlockScaled(k=64).op().replace("<16x4xf8", "<16x3xf8"),
        "a_scales must be [16, 4] for a [16, 64] with block 16, row_major, got [16, 3]",
    ),
    "blocked scales without padding": (
        BlockScaled(m=16, k=64)
        .op()
        .replace('a_scale_layout = "row_major"', ('a_scale_layout = "blocked_128x4"')),
        "a_scales must be [1, 1, 512] for a [16, 64] with block 16, blocked_128x4, got [16, 4]",
    ),
    "an unknown layout": (
        BlockScaled().op().replace('b_scale_layout = "row_major"', 'b_scale_layout = "column"'),
        'a_scale_layout and b_scale_layout must be "row_major" or "blocked_128x4"',
    ),
    "fp4 by fp8 with ue4m3 scales": (
        BlockScaled(b=F8A).op(),
        "no kind of tcgen05.mma multiplies f4E2M1FN by f8E4M3FN with f8E4M3FN scales, block 16",
    ),
    "fp8 with block 16": (
        BlockScaled(a=F8A, b=F8A, scale=UE8M0).op(),
        "no kind of tcgen05.mma multiplies f8E4M3FN by f8E4M3FN with f8E8M0FNU scales, block 16",
    ),
    "ue4m3 scales with block 32": (
        BlockScaled(block=32).op(),
        "scales of type f8E4M3FN (ue4m3) must have block 16, got 32: block 32 takes f8E8M0FNU",
    ),
    "two types of scales": (
        BlockScaled().op().replace("tensor<4xf8E4M3FN>", "tensor<4xf8E8M0FNU>"),
        "one scale type for both operands",
    ),
    "an int8 operand": (
        BlockScaled().op().replace("<64xf4E2M1FN>", "<64xi8>"),
        "a and b must be of f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2, got f4E2M1FN and i8",
    ),
    "a global scale in f16": (
        BlockScaled(alpha="after").op().replace("tensor<f32>", "tensor<f16>"),
        "a_global and b_global must be tensor<f32>, got tensor<f16>",
    ),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs(what: str) -> None:
    text, words = PROGRAMS[what]
    with pytest.raises(Error, match=re.escape(words)):
        tcir.compile(text, "gemv-simt")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, "expected rows of 1 to 8, got 0"),
        ({"warps": 33}, "expected warps of 1 to 32, got 33"),
        ({"target": "sm_80"}, "expected target sm_90 or sm_90a or sm_100a"),
    ],
)
def test_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Error, match=re.escape(words)):
        tcir.compile(BlockScaled(m=2, k=32).op(), "gemv-simt", **options)


def test_a_cast_to_the_same_type_changes_nothing() -> None:
    program = BlockScaled(m=2, k=32).op().replace(
        '  %y = "tc.block', "  %z = tensor.cast %b : tensor<32xf4E2M1FN> to tensor<32xf4E2M1FN>\n"
        '  %y = "tc.block',
    ).replace("%sa, %b, %sb", "%sa, %z, %sb")  # fmt: skip
    report = tcir.compile(program, "gemv-simt", reorder=True, validate=True).report
    assert report is not None and report.ok, str(report)


ARRAYS = {
    "packed along the wrong axis": (
        "a", lambda a: np.zeros((1, 32), np.uint8), "expected an array float4_e2m1fn[2, 32], got "
    ),
    "bytes that are not packed": (
        "a", lambda a: a.view(np.uint8), "expected an array float4_e2m1fn[2, 32], got uint8[2, 32]"
    ),
    "scales as bytes": (
        "sa", lambda a: a.view(np.uint8), "expected an array float8_e4m3fn[2, 2], got uint8[2, 2]"
    ),
    "a global scale of one element": (
        "ga", lambda a: a.reshape(1), "expected an array float32[], got float32[1]"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernel() -> tcir.Kernel:
    return tcir.compile(CASE.op(), "gemv-simt", rows=1, warps=1)


CASE = BlockScaled(m=2, k=32, alpha="after")


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays(kernel: tcir.Kernel, what: str) -> None:
    name, change, words = ARRAYS[what]
    arrays: dict[str, Any] = inputs_of(CASE)
    arrays[name] = change(arrays[name])
    with pytest.raises(InputError, match=re.escape(words)):
        kernel(*arrays.values(), np.zeros(2, np.float32))


def test_rows_of_whole_bytes() -> None:
    from tcir.program.memory_image import to_memory

    with pytest.raises(InputError, match="expected rows of whole bytes, got float4_e2m1fn"):
        to_memory(np.zeros((2, 3), DTYPES[F4]))


def test_nan_scales_and_infinite_elements(kernel: tcir.Kernel) -> None:
    """A NaN scale: NaN in the rows that it reaches, and so with a NaN global scale."""
    arrays = inputs_of(CASE)
    out = np.zeros(2, np.float32)
    arrays["sa"][1, 1] = np.nan
    kernel(*arrays.values(), out)
    assert np.isnan(out).tolist() == [False, True]
    arrays = inputs_of(CASE) | {"gb": np.array(np.nan, np.float32)}
    kernel(*arrays.values(), out)
    assert np.isnan(out).all()


def test_signed_scales_count_as_positive(kernel: tcir.Kernel) -> None:
    """Bit 7 of ue4m3 is ignored, by the op and by the kernel."""
    arrays = inputs_of(CASE)
    out, again = np.zeros(2, np.float32), np.zeros(2, np.float32)
    kernel(*arrays.values(), out)
    kernel(*(arrays | {"sa": np.negative(arrays["sa"])}).values(), again)
    assert (out.view(np.uint32) == again.view(np.uint32)).all()
