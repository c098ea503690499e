"""Bugs in layers on CUDA cores: constants, norms, maxima, special cases, ends of windows."""

from __future__ import annotations

import re

from .edits import Edit, both, clamped, constant, number, results, sub, where
from .planted import PTX, Planted

SIMT = "convert-to-simt"
EPSILON = r"(arith\.constant )1\.0+e-05( : f64)"
DIVISION = re.compile(r"(%\w+) = arith\.divf (%\w+), (%\w+) : (\w+)")
QUOTIENT = re.compile(
    r"(%\w+) = scf\.if (?:(?!scf\.if).)*?arith\.divf (%\w+), (%\w+) : (\w+).*?\n *\}", re.DOTALL
)
"""A quotient by a shared divisor, whose division is in one of two branches."""


def one_pass(text: str) -> str:
    """A variance as the sum of squares less the mean times the sum, divided."""
    first, last = list((QUOTIENT if QUOTIENT.search(text) else DIVISION).finditer(text))[:2]
    mean, total, kind = first[1], first[2], first[4]
    lines = (
        f"%m_ = arith.mulf {mean}, {total} : {kind}",
        f"%d_ = arith.subf {last[2]}, %m_ : {kind}",
        f"{last[1]} = arith.divf %d_, {last[3]} : {kind}",
    )
    squares = re.compile(rf"( = arith\.subf (%\w+), {mean} : .*\n.* = arith\.mulf )%\w+, %\w+")
    return squares.sub(r"\1\2, \2", text[: last.start()] + "\n".join(lines) + text[last.end() :])


LAST_COLUMN = sub(
    r"(%\w+ = arith\.select )%11(, %\w+, %cst : f32\n\s*%\w+ = arith\.addf)",
    r"%last_ = arith.cmpi ult, %10, %c9_i32 : i32\n\1%last_\2",
    1,
)
"""The last thread of a row adds its last column to no sum."""


def divided_by(number: str, which: int) -> Edit:
    """The `which`-th quotient is one by `number`."""

    def edit(text: str) -> str:
        found = list(DIVISION.finditer(text))[which]
        new = (
            f"%by_ = arith.constant {number} : {found[4]}\n{found[1]} = arith.divf {found[2]}, %by_"
        )
        return f"{text[: found.start()]}{new} : {found[4]}{text[found.end() :]}"

    return edit


NEGATIVE_ONLY = (
    "$z = arith.constant $D(0.0) : $T",
    "$p = arith.cmpf olt, $x, $z : $T",
)


def asm(of: str, before: str = "", behind: str = "") -> Edit:
    """Instructions before and behind an approximation in PTX, on its operand and result."""
    return sub(
        rf"\t({of}\S*) (%\w+), (%\w+);",
        lambda m: " ".join(
            [before.replace("$", m[3]), f"{m[1]} {m[2]}, {m[3]};", behind.replace("$", m[2])]
        ),
    )


def _bugs(program: str, *rows: tuple[str, Edit], after: str = SIMT) -> list[Planted]:
    return [Planted(what, f"{program} layer", after, edit) for what, edit in rows]


NORMS = [
    *(
        bug
        for program in ("layer_norm", "rms_norm", "batch_norm", "layer_norm_f16")
        for bug in _bugs(
            program,
            ("epsilon is 1e-6", sub(EPSILON, r"\g<1>1.000000e-06\2")),
            ("epsilon left out", sub(EPSILON, r"\g<1>0.000000e+00\2")),
        )
    ),
    *_bugs(
        "layer_norm",
        ("the variance is E(x^2) - E(x)^2", one_pass),
        (
            "the mean without its last column",
            LAST_COLUMN,
        ),
        (
            "the variance of 39 degrees of freedom",
            divided_by("39.0", 1),
        ),
        (
            "deviations of magnitude 2^40 and more are 2^40",
            results(r"arith\.subf", *clamped("-1.0995116e12", "1.0995116e12")),
        ),
        ("deviations below 2^-24 are 0", results(r"arith\.subf", *where("olt", "5.96e-08", "0.0"))),
    ),
    *_bugs(
        "rms_norm",
        ("numbers below 2^-60 are 0", results(r"arith\.mulf %28", *where("olt", "1.0e-18", "0.0"))),
        (
            "means of squares at most 2^96",
            results(r"arith\.divf", number("c", "7.9228163e28"), "$y = arith.minimumf $x, $c : $T"),
        ),
    ),
    *_bugs(
        "std",
        (
            "sums of f32",
            results(
                r"arith\.addf",
                "$n = arith.truncf $x : f64 to f32",
                "$y = arith.extf $n : f32 to f64",
            ),
        ),
        (
            "the variance is E(x^2) - E(x)^2",
            one_pass,
        ),
        ("divided by 40, not 39", sub(r"3\.90+e\+01", "4.000000e+01")),
    ),
    *_bugs(
        "norm",
        ("of one column less", LAST_COLUMN),
        (
            "squares of at most 2^100",
            results(r"arith\.mulf", number("c", "1.2676506e30"), "$y = arith.minimumf $x, $c : $T"),
        ),
    ),
    *_bugs(
        "mean_hw",
        (
            "squares of numbers above 2^10 lost",
            results(r"arith\.divf", *where("ogt", "1024.0", "1024.0")),
        ),
    ),
    *_bugs(
        "sum_all",
        (
            "sums beyond 2^40 stay there",
            results(r"arith\.addf", *clamped("-1.0995116e12", "1.0995116e12")),
        ),
    ),
]
POWERS = [
    *_bugs(
        "pow_half",
        ("-inf is NaN", sub(r"arith\.select %13, %cst_3, %12", "arith.select %13, %12, %12")),
        ("-0 is -0", sub(r"arith\.addf %15, %cst_4", "arith.maxnumf %15, %15")),
        after=SIMT,
    ),
    *_bugs(
        "pow_half",
        ("subnormals are 0", asm(r"sqrt\.rn\.f32", before="mul.rn.ftz.f32 $, $, 0f3F800000;")),
        after=PTX,
    ),
    *_bugs(
        "pow3",
        (
            "powers of negative numbers are positive",
            sub(
                r"(%13 = arith\.mulf )%12, %12 : f32",
                r"%z_ = arith.constant 0.0 : f32\n%n_ = arith.subf %z_, %12 : f32\n"
                r"%a = arith.maximumf %n_, %12 : f32\n\1%a, %12 : f32",
            ),
        ),
        (
            "x * x of at most 2^60",
            results(
                r"arith\.mulf %12, %12",
                number("c", "1.1529215e18"),
                "$y = arith.minimumf $x, $c : $T",
            ),
        ),
    ),
]
FUNCTIONS = [
    *_bugs(
        "softplus",
        ("x from 10 on", sub(r"2\.0+e\+01", "1.000000e+01")),
        ("x from 5 on", sub(r"2\.0+e\+01", "5.000000e+00")),
        (
            "0 below -10",
            sub(
                r"%24 = arith\.select %13, %12, %23 : f32",
                "%l = arith.constant -10.0 : f32\n%z = arith.constant 0.0 : f32\n"
                "%b = arith.cmpf olt, %12, %l : f32\n"
                "%v = arith.select %b, %z, %23 : f32\n"
                "%24 = arith.select %13, %12, %v : f32",
            ),
        ),
    ),
    *_bugs(
        "gelu_tanh",
        ("a coefficient of the series is 0.125", sub(r"0\.13333334", "0.125")),
        ("the series up to 1", sub(r"6\.250000e-02", "1.000000e+00")),
        (
            "0 below -3",
            results(
                r"arith\.mulf %12, %3\d",
                number("c", "-3.0"),
                number("z", "0.0"),
                "$p = arith.cmpf olt, %12, $c : $T",
                "$y = arith.select $p, $z, $x : $E(i1), $T",
            ),
        ),
    ),
    *_bugs(
        "mish",
        ("a coefficient of the series is -0.3", sub(r"-0\.333333343", "-3.000000e-01")),
        ("x from 3 on", sub(r"2\.0+e\+01", "3.000000e+00")),
        (
            "NaN is 0",
            both(
                sub(r"arith\.cmpf ugt", "arith.cmpf ogt"),
                results(
                    r"arith\.mulf %12, %3\d",
                    "$z = arith.constant 0.0 : f32",
                    "$p = arith.cmpf uno, $x, $x : f32",
                    "$y = arith.select $p, $z, $x : f32",
                ),
            ),
        ),
    ),
    *_bugs(
        "elu",
        (
            "-1 from -4 on",
            results(
                r"arith\.subf",
                number("c", "-0.9816"),
                number("o", "-1.0"),
                "$p = arith.cmpf olt, $x, $c : $T",
                "$y = arith.select $p, $o, $x : $E(i1), $T",
            ),
        ),
        ("results below 2^-16 are 0", results(r"arith\.addf", *where("olt", "1.5e-05", "0.0"))),
    ),
    *_bugs(
        "hardswish",
        (
            "times 1/6, not divided by 6",
            sub(
                r"%36 = arith\.mulf %35, %12",
                "%sixth = arith.constant 0.16666667 : f32\n%q_ = arith.mulf %17, %sixth : f32\n"
                "%36 = arith.mulf %q_, %12",
            ),
        ),
        (
            "up to 5.96875",
            sub(r"%cst_3 = arith\.constant 6\.0+e\+00", "%cst_3 = arith.constant 5.96875"),
        ),
        ("inf is 0", results(r"arith\.mulf %35, %12", *where("oeq", "0x7F800000", "0.0"))),
        ("tiny results are 0", results(r"arith\.mulf %35, %12", *where("olt", "1.0e-30", "0.0"))),
    ),
    *_bugs(
        "leaky_relu",
        ("the slope of f16", sub(r"1\.0+e-02", "0.0100021362304688")),
        ("-0 is +0", results(r"arith\.addf", number("z", "0.0"), "$y = arith.addf $x, $z : $T")),
        (
            "slope 1 below -2^100",
            results(
                r"arith\.select %15",
                number("c", "-1.2676506e30"),
                "$p = arith.cmpf olt, $x, $c : f32",
                "$h = arith.constant 100.0 : f32",
                "$m = arith.mulf $x, $h : f32",
                "$y = arith.select $p, $m, $x : f32",
            ),
        ),
    ),
    *_bugs(
        "silu",
        (
            "e^-x rounded through bf16",
            results(
                r"arith\.extf %13",
                "$n = arith.truncf $x : f32 to bf16",
                "$y = arith.extf $n : bf16 to f32",
            ),
        ),
        (
            "-inf is 0",
            results(
                r"arith\.mulf .*f16",
                number("z", "0.0"),
                "$p = arith.cmpf uno, $x, $x : $T",
                "$y = arith.select $p, $z, $x : $E(i1), $T",
            ),
        ),
    ),
    *_bugs(
        "log_softmax",
        (
            "log of the quotient",
            sub(
                r"%93 = arith\.subf %55, %92 : f32",
                "%d = arith.divf %57, %90 : f32\n"
                '%g = llvm.inline_asm "lg2.approx.f32 $0, $1;", "=f,f" %d : (f32) -> f32\n'
                "%93 = arith.mulf %g, %cst_43 : f32",
            ),
        ),
        ("maxima start at -1e4", sub("0xFF800000", "-1.0e+04")),
        (
            "sums of at most 16",
            results(
                r'llvm\.inline_asm "lg2',
                number("c", "4.0", "f32"),
                "$y = arith.minimumf $x, $c : f32",
            ),
        ),
    ),
    *_bugs(
        "softmax_f16",
        (
            "e^x below 2^-14 is 0",
            results(
                r'llvm\.inline_asm "ex2',
                number("c", "6.1e-05", "f32"),
                "$z = arith.constant 0.0 : f32",
                "$p = arith.cmpf olt, $x, $c : f32",
                "$y = arith.select $p, $z, $x : f32",
            ),
        ),
        ("maxima without the last row", constant(6, 5, 2)),
    ),
]
SELECTED = [
    *_bugs(
        "argmax",
        ("one number of four passed over", sub(r"(arith\.minsi )%133(, %140)", r"\1%140\2")),
        ("the first NaN", sub(r"arith\.cmpi slt", "arith.cmpi sle")),
        ("numbers below 0 never chosen", sub("0xFF800000", "0.0")),
        ("a NaN is passed over", sub(r"arith\.cmpf uno", "arith.cmpf one")),
        (
            "inf is not above the largest number",
            results(r"arith\.bitcast %2\d", *clamped("0xFF7FFFFF", "0x7F7FFFFF")),
        ),
        ("subnormals are 0", results(r"arith\.bitcast %2\d", *where("olt", "0x00800000", "0.0"))),
    ),
    *_bugs(
        "max_pool_indices",
        (
            "the padding is 0",
            sub(
                r"(%\d+ = )(arith\.select %\d+, %\d+, )%cst : f32",
                r"%pad = arith.constant 0.0 : f32 \1\2%pad : f32",
                1,
            ),
        ),
        (
            "the first row of a window instead of the second",
            sub(r"(%c1_i32_41 = arith.constant) 1", r"\1 0"),
        ),
        ("maxima start at 0", sub(r"0xFF800000", "0.0", 1)),
    ),
    *_bugs(
        "max_pool_i8",
        ("starts at -127", constant(-128, -127)),
        ("unsigned bytes", sub(r"arith\.shrsi", "arith.shrui")),
    ),
    *_bugs(
        "greater",
        ("not less than 0.5", sub(r"arith\.cmpf ogt", "arith.cmpf oge")),
        ("0.5 of f32's next", sub(r"5\.0+e-01 : f64", "0.50000005960464477539 : f64")),
        ("NaN is greater", sub(r"arith\.cmpf ogt", "arith.cmpf ugt")),
    ),
    *_bugs(
        "dequantise",
        (
            "-128 is -127",
            results(r"arith\.shrsi", number("c", "-127"), "$y = arith.maxsi $x, $c : $T"),
        ),
        ("unsigned bytes", sub(r"arith\.shrsi", "arith.shrui")),
        (
            "scales below 2^-64 are 0",
            results(r"llvm\.load .*f32", *where("olt", "5.42e-20", "0.0")),
        ),
    ),
    *_bugs(
        "relu_i8",
        (
            "-128 stays",
            results(
                r"arith\.shrsi",
                number("c", "-128"),
                number("n", "5"),
                "$p = arith.cmpi eq, $x, $c : $T",
                "$y = arith.select $p, $n, $x : $T",
            ),
        ),
    ),
    *_bugs("tril", ("without the diagonal", sub(r"arith\.cmpi sle", "arith.cmpi slt"))),
    *_bugs(
        "upsample",
        (
            "NaN is 0",
            results(
                r"llvm\.load .*f32",
                number("z", "0.0"),
                "$p = arith.cmpf uno, $x, $x : $T",
                "$y = arith.select $p, $z, $x : $T",
            ),
        ),
    ),
    *_bugs(
        "cat1",
        (
            "the first column of the second is the first's",
            sub(r"arith\.cmpi ult, %5", "arith.cmpi ule, %5"),
        ),
    ),
    *_bugs(
        "avg_pool_inside",
        (
            "divided by 9 in corners",
            sub(
                r"(%\w+ = )arith\.divf (%\w+), %\w+ : f32",
                r"%nine = arith.constant 9.0 : f32 \1arith.divf \2, %nine : f32",
            ),
        ),
    ),
    *_bugs(
        "conv_depthwise",
        ("sums of at most 2^14", results(r"arith\.addf", *clamped("-16384.0", "16384.0"))),
    ),
    *_bugs(
        "gelu_f16",
        (
            "-0 for tiny results",
            results(
                r"arith\.mulf .*f16",
                "$c = arith.constant 6.2e-05 : f16",
                "$z = arith.constant 0.0 : f16",
                "$n = arith.subf $z, $x : f16",
                "$g = arith.maximumf $x, $n : f16",
                "$p = arith.cmpf olt, $g, $c : f16",
                "$y = arith.select $p, $z, $x : f16",
            ),
        ),
    ),
]
BUGS = [*NORMS, *POWERS, *FUNCTIONS, *SELECTED]
