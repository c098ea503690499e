"""Bugs in modules of several launches and with constant weights, and what their layers hide."""

from __future__ import annotations

from .attack_epilogues import AWAY, chosen, twice
from .edits import Edit, clamped, masked, operand, results, source, sub, where
from .planted import Planted
from .values_tensors import FINITE, NAN_TO_ZERO, NO_SUBNORMALS

SPLIT, TILED, SIMT = "split-launches", "tile-gemm", "convert-to-simt"
HIDDEN = r'"tc\.matmul".*-> tensor<40x48xf32>'
FIRST = r'"tc\.matmul".*-> tensor<40x32xf32>'
INPUT = r'"tc\.matmul"\(%arg0, %arg1\).*'
FLUSHED = where("olt", "6.104e-05", "0.0")


def first(edit: Edit) -> Edit:
    """Edits the first function only."""

    def changed(text: str) -> str:
        head, name, rest = text.partition("func.func @two_1")
        return edit(head) + name + rest

    return changed


def second(edit: Edit) -> Edit:
    """Edits the second function only."""

    def changed(text: str) -> str:
        head, name, rest = text.partition("func.func @two_1")
        return head + name + edit(rest)

    return changed


BUGS = [
    *(
        Planted(f"hidden layer: {what}", program, SPLIT, first(edit))
        for program in ("two", "hopper two", "programmatic")
        for what, edit in (
            ("ties away from zero", AWAY),
            ("rounded to 16 bits first", twice(16)),
            ("toward zero", source(r"arith\.truncf", *masked(0xFFFFE000 - (1 << 32)))),
            ("subnormals of f16 are 0", source(r"arith\.truncf", *FLUSHED)),
        )
    ),
    *(
        Planted(
            "hidden layer: saturates",
            program,
            SPLIT,
            first(results(HIDDEN, *clamped("-65504.0", "65504.0"))),
        )
        for program in ("two", "programmatic")
    ),
    *(
        Planted(f"hidden layer: {what}", program, SPLIT, first(edit))
        for program in ("two relu6", "hopper two")
        for what, edit in (
            ("up to 5.996", sub(r"6\.0+e\+00", "5.99609375")),
            ("up to 6.004", sub(r"6\.0+e\+00", "6.00390625")),
            ("relu of NaN is 0", sub("maximumf", "maxnumf")),
            ("from 2^-14 on", sub(r"(arith\.constant )0\.0+e\+00", r"\g<1>6.103515625e-05")),
        )
    ),
    *(
        Planted(what, "two gelu", SPLIT, edit)
        for what, edit in (
            ("hidden layer: sums beyond 4 are 4", first(results(HIDDEN, *clamped("-4.0", "4.0")))),
            (
                "hidden layer: gelu by tanh",
                first(
                    sub(
                        r"(%\w+) = math\.erf (%\w+) : f32",
                        r"%k_ = arith.constant 1.1283792 : f32 %m_ = arith.mulf \2, %k_ : f32 "
                        r"\1 = math.tanh %m_ : f32",
                    )
                ),
            ),
            ("hidden layer: 0.7", first(sub(r"0\.707106769", "0.7"))),
            (
                "last layer: toward zero",
                second(
                    sub(
                        r"(%\w+) = (\"tc\.matmul\".*-> )tensor<40x32xf16>",
                        r"%s = \2tensor<40x32xf32>\n"
                        r"%l = arith.constant dense<0.9995> : tensor<40x32xf32>\n"
                        r"%t = arith.mulf %s, %l : tensor<40x32xf32>\n"
                        r"\1 = arith.truncf %t : tensor<40x32xf32> to tensor<40x32xf16>",
                    )
                ),
            ),
        )
    ),
    *(
        Planted(
            f"last layer: {what}", program, SPLIT, second(operand(r'"tc\.matmul"', side, *lines))
        )
        for program in ("two", "hopper two")
        for what, side, lines in (
            ("subnormals of the weights are 0", 1, where("olt", "6.104e-05", "0.0")),
            ("infinities of the weights are 65504", 1, clamped("-65504.0", "65504.0")),
            ("NaN of the weights is 0", 1, NAN_TO_ZERO),
            ("the hidden layer's NaN is 0", 0, NAN_TO_ZERO),
        )
    ),
    *(
        Planted(what, program, SPLIT, edit)
        for program, sums in (("constant f16", FIRST), ("hopper constant", FIRST))
        for what, edit in (
            ("sums beyond 2^13 stay there", results(sums, *clamped("-8192.0", "8192.0"))),
            ("slope of f16", sub(r"0\.00999999977", "0.0100021362304688")),
            ("negative infinity is 0", results(sums, *chosen("oeq", "0xFF800000", "0.0"))),
            ("sums below 2^-10 are 0", results(sums, *where("olt", "9.76e-04", "0.0"))),
            ("A's subnormals are 0", operand(r'"tc\.matmul"', 0, *where("olt", "0x0400", "0.0"))),
            (
                "A's largest number is infinite",
                operand(r'"tc\.matmul"', 0, *where("oeq", "65504.0", "0x7C00")),
            ),
        )
    ),
    *(
        Planted(what, "constant, few", SPLIT, edit)
        for what, edit in (
            ("sums cut to 20 bits", results(FIRST, *masked(0xFFFFFFF0 - (1 << 32)))),
            (
                "sums through f16",
                results(
                    FIRST,
                    "$n = arith.truncf $x : $T to $E(f16)",
                    "$y = arith.extf $n : $E(f16) to $T",
                ),
            ),
            ("infinite sums are the largest number", results(FIRST, *FINITE)),
            ("subnormal bias is 0", results(r'"tc\.element"', *NO_SUBNORMALS)),
        )
    ),
    *(
        Planted(what, "constant two", SPLIT, edit)
        for what, edit in (
            ("hidden layer: up to 5.996", first(sub(r"6\.0+e\+00", "5.99609375"))),
            ("hidden layer: NaN is 0", first(sub("maximumf", "maxnumf"))),
            ("hidden layer: ties away from zero", first(AWAY)),
            (
                "the hidden layer's subnormals are 0",
                second(operand(r'"tc\.matmul"', 0, *where("olt", "0x0400", "0.0"))),
            ),
        )
    ),
    *(
        Planted(what, program, SPLIT, edit)
        for program in ("sdpa_bf16 layer",)
        for what, edit in (
            ("scores of at most 64", results(r'"tc\.matmul".*f32>$', *clamped("-64.0", "64.0"))),
            ("the scale after the softmax's maximum of 0", sub("0xFF800000", "0.0", 1)),
            ("e^x below 2^-7 is 0", results(r"math\.exp", *where("olt", "7.8e-03", "0.0"))),
            (
                "the sum without the last key",
                sub(r"arith\.divf (%\w+), (%\w+)", r"arith.divf \1, \1"),
            ),
        )
    ),
    *(
        Planted(what, "attention_masked layer", SPLIT, edit)
        for what, edit in (
            ("e^x below 2^-20 is 0", results(r"math\.exp", *where("olt", "9.5e-07", "0.0"))),
            ("maxima start at 0", sub("0xFF800000", "0.0", 1)),
        )
    ),
    *(
        Planted(what, "mlp_casts layer", SPLIT, edit)
        for what, edit in (
            (
                "sums clamped to 2048",
                results(r'"tc\.matmul".*f32>$', *clamped("-2048.0", "2048.0")),
            ),
            ("NaN is 0", results(r'"tc\.matmul".*f32>$', *NAN_TO_ZERO)),
            ("ties away from zero", AWAY),
        )
    ),
    *(
        Planted(what, "matmul_silu layer", SPLIT, edit)
        for what, edit in (
            (
                "x e^x / (1 + e^x)",
                sub(
                    r"(%\w+) = arith\.divf (%\w+), (%\w+) : f32",
                    r"%o_ = arith.constant 1.0 : f32 %e_ = arith.subf \3, %o_ : f32 "
                    r"%n_ = arith.mulf %e_, \2 : f32 \1 = arith.divf %n_, \3 : f32",
                ),
            ),
            (
                "sums beyond 2^13 stay there",
                results(r'"tc\.matmul".*f32>$', *clamped("-8192.0", "8192.0")),
            ),
        )
    ),
    *(
        Planted(what, program, SPLIT, edit)
        for program in ("convs_residual layer", "convs_nchw layer")
        for what, edit in (
            (
                "sums of at most 2^12",
                results(r'"tc\.conv2d".*f32>$', *clamped("-4096.0", "4096.0")),
            ),
            ("NaN is 0", results(r'"tc\.conv2d".*f32>$', *NAN_TO_ZERO)),
            (
                "sums cut to 12 bits",
                results(r'"tc\.conv2d".*f32>$', *masked(0xFFFFF000 - (1 << 32))),
            ),
        )
    ),
]
