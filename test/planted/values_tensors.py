"""Bugs that show on some values only: range, rounding, sign, NaN, infinities, subnormals."""

from __future__ import annotations

from .edits import clamped, masked, operand, results, sub, through, where
from .planted import Planted

MATMUL = r'"tc.matmul"'
CONV = r'"tc.conv2d"'
SCALED = r'"tc.block_scaled_matmul"'
SUMS = r'"tc.tmem_ld"'
NAN_TO_ZERO = (
    "$z = arith.constant $D(0.0) : $T",
    "$p = arith.cmpf uno, $x, $x : $T",
    "$y = arith.select $p, $z, $x : $E(i1), $T",
)
NAN_TO_INF = ("$z = arith.constant $D(0x7F800000) : $T", *NAN_TO_ZERO[1:])
LARGEST = "0x7F7FFFFF"
NORMAL = "0x00800000"
"""The smallest normal number of f32."""
FINITE = clamped("0xFF7FFFFF", LARGEST)
NO_SUBNORMALS = where("olt", NORMAL, "0.0")
# A code: bits of one byte, as i8.
CODE = "$b = arith.bitcast $x : $T to $E(i8)"
BACK = "$y = arith.bitcast $d : $E(i8) to $T"


def code(op: str, value: int) -> tuple[str, ...]:
    """The byte of a scale through an integer op with a constant."""
    return (
        CODE,
        f"$c = arith.constant dense<{value}> : $E(i8)",
        f"$d = arith.{op} $b, $c : $E(i8)",
        BACK,
    )


def code_is(old: int, new: int) -> tuple[str, ...]:
    """One code of a scale as another."""
    return (
        CODE,
        f"$c = arith.constant dense<{old}> : $E(i8)",
        f"$n = arith.constant dense<{new}> : $E(i8)",
        "$p = arith.cmpi eq, $b, $c : $E(i8)",
        "$d = arith.select $p, $n, $b : $E(i1), $E(i8)",
        BACK,
    )


def code_above(limit: int) -> tuple[str, ...]:
    """Codes from a limit on, and below 254, one too high."""
    return (
        CODE,
        f"$c = arith.constant dense<{limit - 256}> : $E(i8)",
        "$e = arith.constant dense<-2> : $E(i8)",
        "$i = arith.constant dense<1> : $E(i8)",
        "$n = arith.addi $b, $i : $E(i8)",
        "$p = arith.cmpi uge, $b, $c : $E(i8)",
        "$q = arith.cmpi ult, $b, $e : $E(i8)",
        "$r = arith.andi $p, $q : $E(i1)",
        "$d = arith.select $r, $n, $b : $E(i1), $E(i8)",
        BACK,
    )


def number_is(old: str, new: str) -> tuple[str, ...]:
    """One number of a narrow type as another."""
    return (
        "$w = arith.extf $x : $T to $E(f32)",
        f"$c = arith.constant dense<{old}> : $E(f32)",
        f"$n = arith.constant dense<{new}> : $E(f32)",
        "$p = arith.cmpf oeq, $w, $c : $E(f32)",
        "$d = arith.select $p, $n, $w : $E(i1), $E(f32)",
        "$y = arith.truncf $d : $E(f32) to $T",
    )


TENSORS = [
    # Operands, behind the pass that makes one op of the program.
    Planted("A through bf16", "warp tf32", "raise-to-tc", operand(MATMUL, 0, *through("bf16"))),
    Planted("B through f16", "warp tf32", "raise-to-tc", operand(MATMUL, 1, *through("f16"))),
    Planted("A's subnormals flushed", "warp bf16", "raise-to-tc",
            operand(MATMUL, 0, *where("olt", "0x0080", "0.0"))),
    Planted("B's infinities are the largest number", "matmul bf16 f32", "raise-to-tc",
            operand(MATMUL, 1, *clamped("0xFF7F", "0x7F7F"))),
    Planted("NaN in A is 0", "matmul f16", "raise-to-tc", operand(MATMUL, 0, *NAN_TO_ZERO)),
    Planted("A's subnormals flushed", "matmul f16", "raise-to-tc",
            operand(MATMUL, 0, *where("olt", "0x0400", "0.0"))),
    Planted("x through bf16", "smem-offset tf32", "raise-to-tc",
            operand(CONV, 0, *through("bf16"))),
    Planted("w's inf is e5m2's largest", "smem-offset e5m2", "raise-to-tc",
            operand(CONV, 1, *clamped("-57344.0", "57344.0"))),
    Planted("w's subnormals flushed", "smem-offset e5m2", "raise-to-tc",
            operand(CONV, 1, *where("olt", "6.103515625e-05", "0.0"))),
    Planted("448 in A is 416", "warp e4m3", "raise-to-tc",
            operand(MATMUL, 0, *number_is("448.0", "416.0"))),
    Planted("NaN in x is 0", "shift-reuse f16", "raise-to-tc", operand(CONV, 0, *NAN_TO_ZERO)),
    Planted("-128 in x is -127", "implicit-gemm i8", "raise-to-tc",
            operand(CONV, 0, "$c = arith.constant dense<-127> : $T",
                    "$y = arith.maxsi $x, $c : $T")),
    Planted("x of 7 bits", "implicit-gemm i8", "raise-to-tc",
            operand(CONV, 0, "$c = arith.constant dense<63> : $T",
                    "$d = arith.constant dense<-64> : $T", "$m = arith.minsi $x, $c : $T",
                    "$y = arith.maxsi $m, $d : $T")),
    Planted("w is unsigned", "implicit-gemm i8", "raise-to-tc",
            sub(r'(tc.conv2d".*strides = array<i64: 1, 1>)', r"\1, unsigned = array<i64: 0, 1>")),
    Planted("A's infinities are 65504", "matmul f16", "raise-to-tc",
            operand(MATMUL, 0, *clamped("-65504.0", "65504.0"))),
    Planted("NaN in w is 0", "implicit-gemm bf16", "raise-to-tc", operand(CONV, 1, *NAN_TO_ZERO)),
    Planted("x's subnormals flushed", "smem-offset tf32", "raise-to-tc",
            operand(CONV, 0, *NO_SUBNORMALS)),
    Planted("w's subnormals flushed", "implicit-gemm bf16", "raise-to-tc",
            operand(CONV, 1, *where("olt", "0x0080", "0.0"))),
    # Scales and narrow elements.
    Planted("ue4m3 NaN is 448 (B)", "padded nvfp4", "raise-block-scaled",
            operand(SCALED, 3, *code_is(127, 126))),
    Planted("global scale of bf16", "padded nvfp4", "raise-block-scaled",
            results(r'"tc.element"', *through("bf16"))),
    *(
        Planted(what, program, "raise-block-scaled", operand(SCALED, number, *lines))
        for program in ("simt mx", "padded mx")
        for number, what, lines in (
            (2, "NaN in B is 0", NAN_TO_ZERO),
            (2, "inf in B is 57344", clamped("-57344.0", "57344.0")),
            (3, "ue8m0 NaN is 2^127 (B)", code_is(-1, -2)),
            (1, "ue8m0 code 0 is 1 (A)", code("maxui", 1)),
            (1, "ue8m0 code 254 is 253 (A)", code_is(-2, -3)),
            (1, "ue8m0 NaN is 2^127 (A)", code_is(-1, -2)),
            (1, "ue8m0 at least 2^-63 (A)", code("maxui", 64)),
            (3, "ue8m0 at most 2^63 (B)", code("minui", 190)),
            (3, "ue8m0 from 2^64 on one too high (B)", code_above(191)),
        )
    ),
    Planted("ue4m3 NaN is 448 (B)", "simt nvfp4", "raise-block-scaled",
            operand(SCALED, 3, *code_is(127, 126))),
    *(
        Planted(what, program, "raise-block-scaled", operand(SCALED, 1, *lines))
        for program in ("simt nvfp4", "padded nvfp4")
        for what, lines in (
            ("ue4m3 subnormals are 0", where("olt", "0.015625", "0.0")),
            ("ue4m3 clamped to 240", clamped("0.0", "240.0")),
            ("ue4m3 NaN is 448", code_is(127, 126)),
            ("ue4m3 without its last bit", code("andi", 126)),
        )
    ),
    *(
        Planted(f"e2m1 {old} is {new}", "simt nvfp4", "raise-block-scaled",
                operand(SCALED, number, *number_is(old, new)))
        for number, old, new in ((0, "6.0", "4.0"), (2, "4.0", "3.0"), (0, "-0.5", "-0.0"),
                                 (2, "1.5", "2.0"))
    ),
    *(
        Planted(f"{what} of e{e}", "padded mx6", "raise-block-scaled",
                operand(SCALED, number, *lines))
        for number, e, what, lines in (
            (0, "2m3", "7.5 is 7.0", number_is("7.5", "7.0")),
            (2, "3m2", "28 is 24", number_is("28.0", "24.0")),
            (2, "3m2", "the smallest is 0", number_is("0.0625", "0.0")),
        )
    ),
    # Results.
    Planted("result through f16", "warp tf32", "raise-to-tc", results(MATMUL, *through("f16"))),
    Planted("result clamped to 2048", "smem-offset tf32", "raise-to-tc",
            results(CONV, *clamped("-2048.0", "2048.0"))),
    Planted("result below 0.5 is 0", "shift-reuse f16", "raise-to-tc",
            results(CONV, *where("olt", "0.5", "0.0"))),
    Planted("inf in the result is 65504", "matmul f16", "raise-to-tc",
            results(MATMUL, *clamped("-65504.0", "65504.0"))),
    Planted("NaN in the result is -inf", "warp bf16", "raise-to-tc",
            results(MATMUL, "$c = arith.constant dense<0xFF80> : $T",
                    "$y = arith.maxnumf $x, $c : $T")),
    Planted("result of 16 bits, saturated", "implicit-gemm i8", "raise-to-tc",
            results(CONV, "$c = arith.constant dense<32767> : $T",
                    "$d = arith.constant dense<-32768> : $T", "$m = arith.minsi $x, $c : $T",
                    "$y = arith.maxsi $m, $d : $T")),
    Planted("result through f32", "implicit-gemm i8", "raise-to-tc",
            results(CONV, "$c = arith.sitofp $x : $T to $E(f32)",
                    "$y = arith.fptosi $c : $E(f32) to $T")),
]  # fmt: skip

_TILED = {
    "matmul bf16 f32": "tile-gemm",
    "matmul f16": "tile-gemm",
    "shift-reuse f16": "tile-conv-shift-reuse",
    "smem-offset tf32": "tile-conv-smem-offset",
    "implicit-gemm bf16": "tile-conv-implicit-gemm",
    "padded mx": "tile-gemv-padded-n",
    "padded nvfp4": "tile-gemv-padded-n",
}
TILES = [
    *(
        Planted(what, program, after, results(SUMS, *lines))
        for program, what, lines in (
            ("matmul bf16 f32", "sums through bf16", through("bf16")),
            ("matmul bf16 f32", "subnormal sums flushed", NO_SUBNORMALS),
            ("matmul bf16 f32", "inf is the largest number", FINITE),
            ("matmul bf16 f32", "NaN is 0", NAN_TO_ZERO),
            ("matmul f16", "sums cut to 13 bits before rounding", masked(0xFFFFF000 - (1 << 32))),
            ("matmul f16", "sums saturate", clamped("-65504.0", "65504.0")),
            ("matmul f16", "tiny sums lose their sign", where("olt", "0x32800000", "0.0")),
            ("shift-reuse f16", "sums rounded toward zero", masked(0xFFFFE000 - (1 << 32))),
            ("shift-reuse f16", "NaN is inf", NAN_TO_INF),
            ("shift-reuse f16", "sums saturate", clamped("-65504.0", "65504.0")),
            ("smem-offset tf32", "sums through f16", through("f16")),
            ("smem-offset tf32", "subnormal sums flushed", NO_SUBNORMALS),
            ("implicit-gemm bf16", "sums rounded toward zero", masked(0xFFFF0000 - (1 << 32))),
            ("implicit-gemm bf16", "sums through f16", through("f16")),
            ("padded mx", "sums clamped to 2^64", clamped("-1.8446744e19", "1.8446744e19")),
            ("padded mx", "NaN is 0", NAN_TO_ZERO),
            ("padded nvfp4", "sums below 0.5 are 0", where("olt", "0.5", "0.0")),
            ("padded nvfp4", "sums rounded to bf16 before the global scales", through("bf16")),
        )
        for after in (_TILED[program], "assign-roles")
    ),
]


BUGS = [*TENSORS, *TILES]
