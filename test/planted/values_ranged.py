"""Bugs in programs whose sums are of unknown order, which show at the ends of the range only, or on
NaN and infinities."""

from __future__ import annotations

from .edits import Edit, both, clamped, results, sub, where
from .planted import Planted

SIMT = "convert-to-simt"
SPLIT = "split-launches"
LOW = "0xFF800000"
"""-inf."""
NO_MAXIMUM = sub(r"arith\.subf (%\w+), %\w+ : f32", r"arith.maximumf \1, \1 : f32")
FROM_ZERO = sub(rf"arith\.constant {LOW} : f32", "arith.constant 0.0 : f32")
FEWER = both(
    sub(
        r"(%\w+ = arith\.select )%11(, %27, %cst : f32)",
        r"%c8_ = arith.constant 8 : i32\n%few_ = arith.cmpi ult, %10, %c8_ : i32\n\1%few_\2",
    ),
    sub(r"(%\w+ = arith\.select )%11(, %\w+, %cst : f32)", r"\1%few_\2"),
)
MINIMUM = both(
    sub(r"arith\.maximumf", "arith.minimumf"),
    sub(f"constant {LOW} : f32", "constant 0x7F800000 : f32"),
)
UNCLAMPED = sub(r"arith\.select (%\w+), %\w+, (%\w+) : f32", r"arith.select \1, \2, \2 : f32")
PADDED = sub(rf"arith\.constant {LOW} : f32", "arith.constant -1.0e+04 : f32")
NAN_LOST = sub(r"arith\.maximumf", "arith.maxnumf")
NAN_IS_A_NUMBER = (
    "$z = arith.constant $D(-32768.0) : $T",
    "$p = arith.cmpf uno, $x, $x : $T",
    "$y = arith.select $p, $z, $x : $E(i1), $T",
)
UP_TO_2048 = clamped("-2048.0", "2048.0")
SATURATED = clamped("-65504.0", "65504.0")
FLUSHED = where("olt", "6.104e-05", "0.0")
FINITE_F32 = clamped("0xFF7FFFFF", "0x7F7FFFFF")


def _sums(shape: str) -> str:
    return rf'"tc.matmul".*-> tensor<{shape}>'


def _bugs(program: str, after: str, **edits: Edit) -> list[Planted]:
    return [Planted(what.replace("_", " "), program, after, edit) for what, edit in edits.items()]


HIDDEN, LAST, RESIDUAL = _sums("136x128xf32"), _sums("136x96xf32"), _sums("48x40xf16")
GELU = _sums("40x64xf32")
BUGS = [
    *_bugs("softmax", SIMT, maximum_not_subtracted=NO_MAXIMUM, maximum_of_32_of_40_columns=FEWER,
           minimum_for_the_maximum=MINIMUM, maximum_starts_at_0=FROM_ZERO),
    *_bugs("attention f16", SIMT, maximum_not_subtracted=NO_MAXIMUM,
           minimum_for_the_maximum=MINIMUM, maximum_starts_at_0=FROM_ZERO),
    *_bugs("quantise i8", SIMT, clamp_missing=UNCLAMPED,
           clamped_to_minus_100=sub(r"-1\.280000e\+02", "-1.000000e+02")),
    *_bugs("max pool", SIMT, padding_of_minus_10000=PADDED, NaN_lost=NAN_LOST),
    *_bugs("maximum of rows", SIMT, NaN_lost=NAN_LOST),
    *_bugs("mlp bf16", SPLIT, hidden_layer_clamped_to_2048=results(HIDDEN, *UP_TO_2048),
           NaN_is_minus_32768=results(LAST, *NAN_IS_A_NUMBER),
           hidden_NaN_is_minus_32768=results(HIDDEN, *NAN_IS_A_NUMBER),
           infinities_are_the_largest_number=results(LAST, *FINITE_F32)),
    *_bugs("layers f32, gelu", SPLIT, hidden_layer_clamped_to_2048=results(GELU, *UP_TO_2048),
           NaN_is_minus_32768=results(GELU, *NAN_IS_A_NUMBER)),
    *_bugs("linear residual", SPLIT, f16_saturates=results(RESIDUAL, *SATURATED),
           subnormals_are_0=results(RESIDUAL, *FLUSHED),
           clamped_to_2048=results(RESIDUAL, *UP_TO_2048),
           NaN_is_minus_32768=results(RESIDUAL, *NAN_IS_A_NUMBER)),
    *_bugs("constant weights", SPLIT, relu_of_NaN_is_0=NAN_LOST,
           clamped_to_2048=results(_sums("40x32xf32"), *UP_TO_2048),
           f16_saturates=sub(r"(%\w+) = arith\.truncf (%\w+) : f32 to f16",
                             r"%l = arith.constant 65504.0 : f32 %m = arith.minimumf \2, %l : f32 "
                             r"\1 = arith.truncf %m : f32 to f16"),
           sums_below_2_to_minus_10_are_0=results(
               _sums("40x32xf32"), *where("olt", "9.765625e-04", "0.0"))),
]  # fmt: skip
