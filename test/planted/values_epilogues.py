"""Value bugs in epilogues, with an accumulator from outside, and between two products."""

from __future__ import annotations

from .edits import Edit, both, clamped, masked, number, operand, results, sub, sums, through, where
from .planted import PTX, Planted
from .values_tensors import FINITE, MATMUL, NAN_TO_ZERO, NO_SUBNORMALS, SUMS

FUSED, RAISED, TILED = "fuse-epilogue", "raise-to-tc", "tile-gemm"
SPLIT, ROLES = "split-launches", "assign-roles"
READ = r'"tc.element".*tensor<\d.*x\w+>\)'
"""Elements of tensors other than the sums, in an epilogue; no scalars."""
LOADED = r'"tc.load_rows"\(%\w+, %'
"""The same bugs on register tiles."""
BETWEEN = r'"tc.matmul".*-> tensor<40x48xf16>'
"""The first of two products."""
HALF_TO_BF16 = (
    "$w = arith.extf $x : $T to $E(f32)",
    "$n = arith.truncf $w : $E(f32) to $E(bf16)",
    "$e = arith.extf $n : $E(bf16) to $E(f32)",
    "$y = arith.truncf $e : $E(f32) to $T",
)
"""Of f16, which bf16 has the bits of."""
SATURATED = clamped("-65504.0", "65504.0")
SECOND = "func.func @two("


def largest_ignored(limit: str) -> tuple[str, ...]:
    """Numbers above a limit are 0."""
    return where("ogt", limit, "0.0")


def integer(op: str, value: int) -> tuple[str, ...]:
    """Through an op on integers with a constant."""
    return (number("c", str(value)), f"$y = arith.{op} $x, $c : $T")


def in_first(edit: Edit) -> Edit:
    """Edits the first function of two."""

    def changed(text: str) -> str:
        first, name, second = text.partition(SECOND)
        return edit(first) + name + second

    return changed


def in_second(edit: Edit) -> Edit:
    """Edits the second function of two."""

    def changed(text: str) -> str:
        first, name, second = text.partition(SECOND)
        return first + name + edit(second)

    return changed


START = [
    *(
        Planted(what, "gemm start", FUSED, results(READ, *lines))
        for what, lines in (
            ("start through bf16", through("bf16")),
            ("start through f16", through("f16")),
            ("start of 16 bits", masked(0xFFFFFF00 - (1 << 32))),
            ("start's infinities are the largest number", FINITE),
            ("NaN in the start is 0", NAN_TO_ZERO),
            ("start's subnormals flushed", NO_SUBNORMALS),
            ("start above 2048 ignored", largest_ignored("2048.0")),
        )
    ),
    Planted("sums through bf16 before they are added to the start", "gemm start", FUSED,
            sums(*through("bf16"))),
    Planted("sums through f16 before they are added to the start", "gemm start", FUSED,
            sums(*through("f16"))),
    Planted("start's subnormals flushed", "gemm start", TILED, results(LOADED, *NO_SUBNORMALS)),
    Planted("start through bf16", "gemm start", ROLES, results(LOADED, *through("bf16"))),
    Planted("added with flushed subnormals", "gemm start", PTX,
            sub("add.rn.f32x2", "add.rn.ftz.f32x2")),
]  # fmt: skip
EPILOGUES = [
    Planted("bias added after rounding", "gemm bias, relu", FUSED,
            sub(r"(%\w+) = arith.addf (%arg\d+), (%\d+) : f32",
                r"%h = arith.truncf \2 : f32 to f16\n%w = arith.extf %h : f16 to f32\n"
                r"\1 = arith.addf %w, \3 : f32")),
    Planted("bias's infinities are the largest number", "gemm bias, relu", FUSED,
            results(READ, *FINITE)),
    Planted("NaN in the bias is 0", "gemm bias, relu", FUSED, results(READ, *NAN_TO_ZERO)),
    Planted("bias clamped to 2^15", "gemm bias, relu", FUSED,
            results(READ, *clamped("-32768.0", "32768.0"))),
    Planted("relu of NaN is 0", "gemm bias, relu", FUSED, sub("maximumf", "maxnumf")),
    Planted("relu of NaN is 0", "gemm bias, relu", PTX, sub(r"max\.NaN\.f32", "max.f32")),
    Planted("NaN in the bias is 0", "gemm bias, relu", TILED, results(LOADED, *NAN_TO_ZERO)),
    Planted("clamped to 0 from 2^-14", "gemm bias, relu", ROLES,
            sub(r"dense<0\.0+e\+00> : vector<32x16xf32>",
                "dense<6.103515625e-05> : vector<32x16xf32>")),
    Planted("sums rounded toward zero", "gemm bias, relu", TILED,
            results(SUMS, *masked(0xFFFFE000 - (1 << 32)))),
    Planted("residual through bf16", "gemm residual", FUSED, results(READ, *HALF_TO_BF16)),
    Planted("residual's infinities are 65504", "gemm residual", FUSED, results(READ, *SATURATED)),
    Planted("NaN in the residual is 0", "gemm residual", FUSED, results(READ, *NAN_TO_ZERO)),
    Planted("residual's subnormals flushed", "gemm residual", FUSED,
            results(READ, *where("olt", "6.103515625e-05", "0.0"))),
    Planted("beta ignored for a residual above 1024", "gemm residual", FUSED,
            results(READ, *largest_ignored("1024.0"))),
    Planted("alpha times the sum not rounded", "gemm residual", FUSED,
            sub(r"arith.addf (%\w+), (%\w+) : f32", r"math.fma %arg5, %5, \2 : f32")),
    *(
        Planted(f"{name} of 0 leaves its factor out", "gemm residual", FUSED,
                sub(rf"(%\w+) = arith.mulf ({of}), {scalar} : f32",
                    rf"%m = arith.mulf \2, {scalar} : f32\n%z = arith.constant 0.0 : f32\n"
                    rf"%p = arith.cmpf oeq, {scalar}, %z : f32\n"
                    r"\1 = arith.select %p, %z, %m : f32"))
        for name, of, scalar in (("alpha", "%arg5", "%5"), ("beta", "%7", "%6"))
    ),
    Planted("an infinite alpha is the largest number", "gemm residual", FUSED,
            results(r'"tc.element".*tensor<f32>\)', *FINITE)),
    Planted("residual's infinities are 65504", "gemm residual", TILED,
            results(LOADED, *SATURATED)),
    Planted("bias added in f32", "gemm f16 bias, relu", RAISED,
            both(sub(r"%3 = arith.truncf (%arg3) : f32 to f16",
                     r"%b = arith.extf %2 : f16 to f32\n%s = arith.addf \1, %b : f32\n"
                     r"%3 = arith.truncf %s : f32 to f16"),
                 sub(r"arith.addf %3, %2 : f16", "arith.minnumf %3, %3 : f16"))),
    Planted("sums saturate before the bias", "gemm f16 bias, relu", RAISED,
            results("arith.truncf", *SATURATED)),
    Planted("NaN in the bias is 0", "gemm f16 bias, relu", RAISED, results(READ, *NAN_TO_ZERO)),
    Planted("bias's subnormals flushed", "gemm f16 bias, relu", TILED,
            results(LOADED, *where("olt", "6.103515625e-05", "0.0"))),
]  # fmt: skip
WHOLE_NUMBERS = [
    *(
        Planted(what, "gemm i8, dequantised", RAISED, edit)
        for what, edit in (
            ("-128 in A is -127", operand(MATMUL, 0, *integer("maxsi", -127))),
            ("-128 in B is 127", operand(
                MATMUL, 1, number("c", "-128"), number("n", "127"),
                "$p = arith.cmpi eq, $x, $c : $T", "$y = arith.select $p, $n, $x : $E(i1), $T")),
            ("B of 7 bits", operand(
                MATMUL, 1, number("c", "63"), number("d", "-64"),
                "$m = arith.minsi $x, $c : $T", "$y = arith.maxsi $m, $d : $T")),
            ("sums of 16 bits, saturated", sums(
                number("c", "32767"), number("d", "-32768"),
                "$m = arith.minsi $x, $c : $T", "$y = arith.maxsi $m, $d : $T")),
            ("sums through f16", results("arith.sitofp", *through("f16"))),
            ("sums through bf16", results("arith.sitofp", *through("bf16"))),
            ("scales through bf16", results(READ, *through("bf16"))),
            ("NaN in a scale is 0", results(READ, *NAN_TO_ZERO)),
            ("scales' infinities are the largest number", results(READ, *FINITE)),
            ("scales multiplied first", both(
                sub(r"arith.mulf (%\w+), %2 : f32", "arith.mulf %2, %3 : f32"),
                sub(r"%6 = arith.mulf %5, %3 : f32", "%6 = arith.mulf %4, %5 : f32"))),
        )
    ),
    Planted("sums to f32 toward zero", "gemm i8, dequantised", PTX,
            sub(r"cvt\.rn\.f32\.s32", "cvt.rz.f32.s32")),
    Planted("scales through bf16", "gemm i8, dequantised", TILED,
            results(LOADED, *through("bf16"))),
]  # fmt: skip
FUNCTIONS = [
    *(
        Planted(what, "gemm silu", RAISED, edit)
        for what, edit in (
            ("exp of 32 at most", results("arith.negf", *clamped("-200.0", "32.0"))),
            ("sums through bf16", sums(*through("bf16"))),
            ("sums through f16", sums(*through("f16"))),
            ("NaN is 0", sums(*NAN_TO_ZERO)),
            ("inf is the largest number", sums(*FINITE)),
            ("results below 2^-20 are 0", results("arith.divf", *where("olt", "9.5e-7", "0.0"))),
        )
    ),
    Planted(
        "sums above 2^15 are 0", "gemm silu", TILED, results(SUMS, *largest_ignored("32768.0"))
    ),
]
BETWEEN_PRODUCTS = [
    *(
        Planted(what, "two gemms", SPLIT, edit)
        for what, edit in (
            ("A B through bf16", results(BETWEEN, *HALF_TO_BF16)),
            ("A B clamped to 16", results(BETWEEN, *clamped("-16.0", "16.0"))),
            ("A B below 2^-6 is 0", results(BETWEEN, *where("olt", "0.015625", "0.0"))),
            ("inf in A B is 65504", results(BETWEEN, *SATURATED)),
            ("NaN in A B is 0", results(BETWEEN, *NAN_TO_ZERO)),
            ("A through bf16", in_first(operand(MATMUL, 0, *HALF_TO_BF16))),
            ("B through bf16", in_first(operand(MATMUL, 1, *HALF_TO_BF16))),
            ("C through bf16", in_second(operand(MATMUL, 1, *HALF_TO_BF16))),
            ("inf in B is 65504", in_first(operand(MATMUL, 1, *SATURATED))),
            ("NaN in A is 0", in_first(operand(MATMUL, 0, *NAN_TO_ZERO))),
            ("A below 2^-12 is 0", in_first(operand(MATMUL, 0, *where("olt", "2.4e-4", "0.0")))),
        )
    ),
    Planted("A B rounded toward zero", "two gemms", TILED,
            in_first(results(SUMS, *masked(0xFFFFE000 - (1 << 32))))),
    Planted("A B cut to 12 bits before rounding", "two gemms", ROLES,
            in_first(results(SUMS, *masked(0xFFFFF000 - (1 << 32))))),
    Planted("A B saturates", "two gemms", ROLES, in_first(results(SUMS, *SATURATED))),
    Planted("A B in f16 toward zero", "two gemms", PTX,
            sub(r"cvt\.rn\.f16x2\.f32", "cvt.rz.f16x2.f32")),
]  # fmt: skip

BUGS = [*START, *EPILOGUES, *WHOLE_NUMBERS, *FUNCTIONS, *BETWEEN_PRODUCTS]
