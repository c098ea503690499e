"""Bugs in epilogues, conversions and tails of all pipelines and both targets."""

from __future__ import annotations

from .edits import (
    Edit,
    number,
    source,
)
from .planted import Planted

GEMM, WARP, GEMV = "tile-gemm", "tile-matmul-warp", "tile-gemv-padded-n"
IMPLICIT, OFFSET, SHIFT = (
    f"tile-conv-{each}" for each in ("implicit-gemm", "smem-offset", "shift-reuse")
)
THREADS, BLOCKS = "convert-tc-to-nvvm", "convert-to-simt"
NARROWED = r"arith\.truncf"
AWAY = source(NARROWED, number("c", "1.00000012"), "$y = arith.mulf $x, $c : $T")
"""Ties away from zero; others hardly ever on another side of one."""
NEGATIVE_AWAY = source(
    NARROWED,
    number("c", "1.00000012"),
    number("z", "0.0"),
    "$m = arith.mulf $x, $c : $T",
    "$p = arith.cmpf olt, $x, $z : $T",
    "$y = arith.select $p, $m, $x : $E(i1), $T",
)
TOWARD_ZERO = source(NARROWED, number("c", "0.99999994"), "$y = arith.mulf $x, $c : $T")
"""Ties toward zero."""


def twice(bits: int) -> Edit:
    """Rounded to so many bits of the mantissa first."""
    half, mask = 1 << (22 - bits), -(1 << (23 - bits))
    return source(
        NARROWED,
        "$b = arith.bitcast $x : $T to $E(i32)",
        number("h", str(half), "$E(i32)"),
        number("k", str(mask), "$E(i32)"),
        "$s = arith.addi $b, $h : $E(i32)",
        "$d = arith.andi $s, $k : $E(i32)",
        "$y = arith.bitcast $d : $E(i32) to $T",
    )


def chosen(test: str, limit: str, other: str) -> tuple[str, ...]:
    """`other` where ``arith.cmpf test, x, limit``."""
    return (
        number("c", limit),
        number("o", other),
        f"$p = arith.cmpf {test}, $x, $c : $T",
        "$y = arith.select $p, $o, $x : $E(i1), $T",
    )


EACH = (("ties away from zero", AWAY), ("rounded to 16 bits first", twice(16)))
SIGNED = (
    ("ties toward zero", TOWARD_ZERO),
    ("ties of negative numbers away from zero", NEGATIVE_AWAY),
)
ROUNDED = [
    *(
        Planted(what, program, after, edit)
        for program, after in (
            ("pairs", GEMM),
            ("clc", GEMM),
            ("persistent leaky", GEMM),
            ("constant f16", GEMM),
            ("swapped", GEMM),
            ("hopper leaky", GEMM),
            ("hopper constant", GEMM),
            ("hopper implicit", IMPLICIT),
            ("hopper offset", OFFSET),
            ("implicit pair", IMPLICIT),
            ("conv chosen", "tile-conv"),
            ("padded relu6", GEMV),
            ("warp leaky", WARP),
            ("split-k leaky", "convert-to-simt"),
            ("simt nvfp4, columns", BLOCKS),
        )
        for what, edit in EACH
    ),
    *(
        Planted(what, program, after, edit)
        for program, after in (
            ("store tma", GEMM),
            ("batched", GEMM),
            ("hopper bf16", THREADS),
            ("hopper persistent", THREADS),
            ("hopper e5m2", THREADS),
            ("constant f16", GEMM),
            ("hopper warp", THREADS),
            ("implicit stride 2", IMPLICIT),
            ("offset dilated", OFFSET),
            ("padded stream-k", THREADS),
            ("warp f16", THREADS),
            ("warp i8", THREADS),
            ("grouped bf16", GEMM),
            ("hopper leaky", GEMM),
            ("simt nvfp4, columns", BLOCKS),
        )
        for what, edit in SIGNED
    ),
]
BUGS = ROUNDED
