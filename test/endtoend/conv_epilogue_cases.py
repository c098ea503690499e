"""Convolutions with an epilogue: types, layouts, steps, tails, and what epilogues read."""

from __future__ import annotations

from .cases import SAME_3x3
from .conv_epilogue_text import FusedConv
from .epilogue_text import TRUNCATE
from .linalg_text import Conv

BLOCK = FusedConv(
    Conv(2, 5, 6, 16, 24, 3, 3, SAME_3x3, out="f16"),
    """
    %z = arith.constant 0.0 : f32
    %u = arith.addf %s, %b : f32
    %e = arith.extf %r : f16 to f32
    %v = arith.addf %u, %e : f32
    %t = arith.maximumf %v, %z : f32
    """
    + TRUNCATE,
    {"b": ("f32", "k"), "r": ("f16", "npqk")},
)
"""The end of a residual block: relu(conv(x, w) + bias + residual)."""
NEGATED = "%t = arith.negf %s : f32\n linalg.yield %t : f32"
IMPLICIT, OFFSET, REUSE = "conv-implicit-gemm", "conv-smem-offset", "conv-shift-reuse"
SCHEDULES = (
    IMPLICIT,
    f"{IMPLICIT}{{cta-group=2}}",
    OFFSET,
    REUSE,
    f"{REUSE}{{tiling=packed}}",
    f"{REUSE}{{tiling=linear}}",
    f"{REUSE}{{halo=refresh}}",
    f"{REUSE}{{tiling=packed halo=refresh halo-load=w128}}",
    "conv",
)
CASES = {
    "bf16 as torch has it, stride 2": (
        FusedConv(
            Conv(1, 11, 10, 24, 40, 3, 3, SAME_3x3, "fhwc", "bf16", "bf16", strides=(2, 2)),
            """
            %h = arith.truncf %s : f32 to bf16
            %z = arith.constant 0.0 : bf16
            %u = arith.addf %h, %b : bf16
            %v = arith.addf %u, %r : bf16
            %p = arith.cmpf ugt, %v, %z : bf16
            %t = arith.select %p, %v, %z : bf16
            linalg.yield %t : bf16
            """,
            {"b": ("bf16", "k"), "r": ("bf16", "npqk")},
        ),
        (IMPLICIT, OFFSET, f"{REUSE}{{tiling=packed}}"),
    ),
    "tf32, added to an argument": (
        FusedConv(Conv(1, 6, 9, 12, 16, 3, 3, SAME_3x3, "fhwc", "f32"), NEGATED, start="npqk"),
        (IMPLICIT, OFFSET, REUSE),
    ),
    "sums that start from the bias": (
        FusedConv(Conv(1, 6, 9, 16, 24, 3, 3, SAME_3x3, out="f16"),
                  "%t = arith.negf %s : f32" + TRUNCATE, start="k"),
        (IMPLICIT, REUSE, "conv"),
    ),
    "i8, a bias of i32, dequantised by channel": (
        FusedConv(
            Conv(1, 7, 7, 16, 32, 3, 3, SAME_3x3, element="i8", out="f16"),
            """
            %d = arith.sitofp %s : i32 to f32
            %t = arith.mulf %d, %c : f32
            """ + TRUNCATE,
            {"c": ("f32", "k")},
            start="k",
        ),
        (IMPLICIT, OFFSET, REUSE),
    ),
    "u8, i32 added": (
        FusedConv(
            Conv(1, 6, 9, 32, 16, 3, 3, SAME_3x3, element="u8", w_element="i8", out="i32"),
            "%t = arith.addi %s, %r : i32\n linalg.yield %t : i32",
            {"r": ("i32", "npqk")},
        ),
        (IMPLICIT,),
    ),
    "f8E4M3FN, clamped": (
        FusedConv(
            Conv(1, 6, 9, 16, 32, 3, 3, SAME_3x3, element="f8E4M3FN", out="f8E4M3FN"),
            """
            %u = arith.mulf %s, %a : f32
            %hi = arith.constant 448.0 : f32
            %lo = arith.constant -448.0 : f32
            %v = arith.minimumf %u, %hi : f32
            %t = arith.maximumf %v, %lo : f32
            %h = arith.truncf %t : f32 to f8E4M3FN
            linalg.yield %h : f8E4M3FN
            """,
            {"a": ("f32", "")},
        ),
        (IMPLICIT, REUSE),
    ),
    "f8E5M2, NaN and infinity beyond; rows of 17 bytes": (
        FusedConv(
            Conv(1, 5, 9, 16, 17, 1, 3, (0, 0, 1, 1), "fhwc", "f8E5M2", "f8E5M2"),
            "%h = arith.truncf %s : f32 to f8E5M2\n linalg.yield %h : f8E5M2",
        ),
        (IMPLICIT,),
    ),
    "scales of images and channels, numbers of pixels": (
        FusedConv(
            Conv(3, 5, 7, 8, 16, 3, 3, SAME_3x3),
            """
            %u = arith.mulf %s, %g : f32
            %v = arith.addf %u, %at : f32
            %t = arith.mulf %v, %m : f32
            linalg.yield %t : f32
            """,
            {"g": ("f32", "nk"), "at": ("f32", "pqk"), "m": ("f32", "npq")},
        ),
        SCHEDULES,
    ),
    "a residual with channels first": (
        FusedConv(
            Conv(2, 5, 7, 8, 24, 3, 3, SAME_3x3),
            "%t = arith.addf %s, %r : f32\n linalg.yield %t : f32",
            {"r": ("f32", "nkpq")},
        ),
        (IMPLICIT, OFFSET, REUSE, f"{REUSE}{{tiling=linear}}"),
    ),
    "dilation 2": (
        FusedConv(Conv(1, 8, 40, 8, 16, 3, 3, (2, 2, 2, 2), out="f16", dilations=(2, 2)),
                  BLOCK.body, BLOCK.inputs),
        (IMPLICIT, OFFSET, REUSE, f"{REUSE}{{tiling=packed}}"),
    ),
    "stride 1 by 2, two tiles of channels": (
        FusedConv(Conv(1, 7, 70, 16, 40, 3, 5, (1, 1, 2, 2), out="f16", strides=(1, 2)),
                  BLOCK.body, BLOCK.inputs),
        tuple(f"{name}{{n-tile=32}}" for name in (IMPLICIT, OFFSET, REUSE)),
    ),
    "3 channels, repacked": (
        FusedConv(Conv(1, 13, 13, 3, 16, 7, 7, (3, 3, 3, 3), out="f16", strides=(2, 2)),
                  BLOCK.body, BLOCK.inputs),
        (IMPLICIT, "conv"),
    ),
    "20 channels out, 257 pixels by pairs": (
        FusedConv(Conv(1, 1, 257, 16, 20, 1, 1, filter="fhwc", out="f16"),
                  BLOCK.body, BLOCK.inputs),
        (f"{IMPLICIT}{{cta-group=2}}",),
    ),
    "a 1 x 1 projection, stride 2": (
        FusedConv(Conv(2, 8, 8, 32, 48, 1, 1, out="f16", strides=(2, 2)), BLOCK.body, BLOCK.inputs),
        (IMPLICIT, OFFSET, REUSE),
    ),
}  # fmt: skip
