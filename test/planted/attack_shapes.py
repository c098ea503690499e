"""Bugs in clamps, requantisation, scales, tails and groups, and in what parts of K add up to."""

from __future__ import annotations

from .attack_epilogues import GEMM, GEMV, IMPLICIT, OFFSET, SHIFT, THREADS, WARP
from .edits import constant, masked, operand, results, sub, where
from .planted import Planted
from .values_tensors import SCALED, code, code_is

SIX = r"(dense<|arith\.constant )6\.0+e\+00"
SUMS = "convert-to-simt"
RELUS = [
    Planted(what, program, after, edit)
    for program, after in (
        ("pairs relu6", GEMM),
        ("hopper offset", OFFSET),
        ("implicit pair", IMPLICIT),
        ("shift relu6", SHIFT),
        ("padded relu6", GEMV),
        ("conv chosen", "tile-conv"),
    )
    for what, edit in (
        ("up to 5.996", sub(SIX, r"\g<1>5.99609375")),
        ("numbers below 2^-14 are 0", results(r"arith\.minimumf", *where("olt", "6.1e-05", "0.0"))),
    )
]
SLOPES = [
    Planted(what, program, after, edit)
    for program, after in (
        ("persistent leaky", GEMM),
        ("hopper leaky", GEMM),
        ("hopper implicit", IMPLICIT),
        ("offset dilated", OFFSET),
        ("warp leaky", WARP),
        ("split-k leaky", "split-k"),
    )
    for what, edit in (
        (
            "slope 1 from -2^-14 on",
            sub(
                r"(%\w+ = arith\.cmpf ogt, %\w+, )%(\w+)( : (\S+))",
                lambda m: (
                    "%low_ = arith.constant "
                    + ("dense<-6.103515625e-05>" if "vector" in m[4] else "-6.103515625e-05")
                    + f" : {m[4]}\n{m[1]}%low_{m[3]}"
                ),
            ),
        ),
        ("slope of f16", sub(r"0\.00999999977", "0.0100021362304688")),
    )
]
WHOLE = [
    Planted(what, program, GEMM, edit)
    for program in ("i8 to i8", "hopper i8 to i8")
    for what, edit in (
        (
            "halves up",
            sub(
                r"(%\w+) = math\.roundeven (%\w+) : (\S+)",
                lambda m: (
                    f"%half_ = arith.constant {'dense<0.5>' if 'vector' in m[3] else '0.5'}"
                    f" : {m[3]}\n"
                    f"%up_ = arith.addf {m[2]}, %half_ : {m[3]}\n{m[1]} = math.floor %up_ : {m[3]}"
                ),
            ),
        ),
        ("rounded toward zero", sub(r"math\.roundeven", "math.trunc")),
        ("from -127 on", sub(r"-1\.280000e\+02", "-1.270000e+02")),
        ("up to 126", sub(r"1\.270000e\+02", "1.260000e+02")),
        (
            "sums through f16",
            results(
                r"arith\.sitofp",
                "$n = arith.truncf $x : $T to $E(f16)",
                "$y = arith.extf $n : $E(f16) to $T",
            ),
        ),
        (
            "scales below 2^-12 are 0",
            results(r'(?:"tc\.load_rows"|"tc\.element")', *where("olt", "2.4e-04", "0.0")),
        ),
    )
]
SCALES = [
    Planted(
        what,
        program,
        "raise-block-scaled" if "simt" in program or "padded" in program else "raise-to-tc",
        operand(SCALED, side, *lines),
    )
    for program, kind in (
        ("gemm nvfp4", "ue4m3"),
        ("gemm mxfp8", "ue8m0"),
        ("padded stream-k", "ue8m0"),
        ("simt nvfp4, columns", "ue4m3"),
    )
    for what, side, lines in (
        (
            ("ue4m3 448 is 416 (A)", 1, code_is(126, 125)),
            ("the smallest ue4m3 is 0 (B)", 3, code_is(1, 0)),
            ("ue4m3 of 6 bits (B)", 3, code("andi", 63)),
        )
        if kind == "ue4m3"
        else (
            ("ue8m0 254 is 253 (B)", 3, code_is(-2, -3)),
            ("ue8m0 0 is 1 (B)", 3, code_is(0, 1)),
            ("ue8m0 NaN is 254 (A)", 1, code_is(-1, -2)),
        )
    )
]
PARTS = [
    Planted(
        "parts through bf16",
        "split-k",
        SUMS,
        results(
            r"llvm\.load %15",
            "$n = arith.truncf $x : $T to $E(bf16)",
            "$y = arith.extf $n : $E(bf16) to $T",
        ),
    ),
    Planted(
        "parts of 16 bits",
        "split-k",
        SUMS,
        results(r"llvm\.load %11", *masked(0xFFFFFF80 - (1 << 32))),
    ),
    Planted(
        "inf less inf is inf",
        "split-k",
        SUMS,
        results(
            r"arith\.addf",
            "$q = arith.cmpf uno, $x, $x : $T",
            "$y = arith.select $q, %12, $x : $E(i1), $T",
        ),
    ),
    Planted("the last 4 results of 2048 are lost", "split-k", SUMS, constant(512, 511)),
    Planted("the first part twice", "split-k", SUMS, constant(2048, 0)),
]
TAILS = [
    Planted(what, program, after, sub(old, new))
    for program, after, what, old, new in (
        (
            "leaky",
            GEMM,
            "the map of A ends a row early",
            "dims = array<i64: 32, 40>",
            "dims = array<i64: 32, 39>",
        ),
        (
            "leaky",
            GEMM,
            "the map of A ends a column early",
            "dims = array<i64: 32, 40>",
            "dims = array<i64: 31, 40>",
        ),
        (
            "batched",
            GEMM,
            "the map of A ends a batch early",
            r"(dims = array<i64: 40, 40, )3",
            r"\g<1>2",
        ),
        (
            "persistent leaky",
            GEMM,
            "the map of A ends at row 139",
            r"(dims = array<i64: 40, )140",
            r"\g<1>139",
        ),
        (
            "clc",
            GEMM,
            "the map of B ends at column 39",
            r"(dims = array<i64: )40, 40>",
            r"\g<1>39, 40>",
        ),
        (
            "clusters",
            GEMM,
            "the map of A ends at row 199",
            r"(dims = array<i64: 72, )200",
            r"\g<1>199",
        ),
        (
            "hopper leaky",
            GEMM,
            "the map of A ends a row early",
            "dims = array<i64: 32, 40>",
            "dims = array<i64: 32, 39>",
        ),
        (
            "hopper tf32",
            GEMM,
            "the last number of K is lost",
            r"(dims = array<i64: )40, 64>",
            r"\g<1>39, 64>",
        ),
        (
            "hopper persistent",
            GEMM,
            "the map of A ends at row 139",
            r"(dims = array<i64: 40, )140",
            r"\g<1>139",
        ),
        (
            "hopper offset",
            OFFSET,
            "the map of x ends a column early",
            r"(dims = array<i64: 16, )8, 8",
            r"\g<1>7, 8",
        ),
        (
            "shift relu6",
            SHIFT,
            "the map of x ends a row early",
            r"(dims = array<i64: 16, 8, )8",
            r"\g<1>7",
        ),
        (
            "implicit stride 2",
            IMPLICIT,
            "a step of 1 in rows",
            r"(element_strides = array<i64: 1, 2, )2",
            r"\g<1>1",
        ),
        (
            "implicit pair",
            IMPLICIT,
            "the map of x ends a column early",
            r"(dims = array<i64: 16, )16, 12",
            r"\g<1>15, 12",
        ),
        (
            "grouped bf16",
            GEMM,
            "the map of B ends a group early",
            r"(dims = array<i64: 40, 16, )3",
            r"\g<1>2",
        ),
        (
            "swapped",
            GEMM,
            "the map of A ends at row 199",
            r"(dims = array<i64: 64, )200",
            r"\g<1>199",
        ),
    )
]
GROUPS = [
    Planted(what, "grouped bf16", THREADS, edit)
    for what, edit in (
        ("no more tiles than size / 128", constant(127, 0)),
        (
            "rows of a tile: size mod 128",
            sub(r"= arith\.minui (%\d+, %c128_i32_\d)", r"= arith.remui \1"),
        ),
        (
            "sizes of 7 bits",
            sub(
                r"(%\d+) = (llvm\.load .*<1> -> i32)",
                r"%w_ = \2\n%m_ = arith.constant 127 : i32\n\1 = arith.andi %w_, %m_ : i32",
            ),
        ),
        (
            "the first row by signed tiles",
            sub(
                r"(%\d+)( = arith\.minui (?:.*\n)*?.*addi %arg9, )%\d+(?= : i32\n *scf\.yield)",
                r"\1\2\1",
            ),
        ),
    )
]
BUGS = [*RELUS, *SLOPES, *WHOLE, *SCALES, *PARTS, *TAILS, *GROUPS]
