"""Value bugs in PTX."""

from __future__ import annotations

import re

from .edits import Edit, sub
from .planted import PTX, Planted

CVT = r"(cvt)\.rn\.(b?f16x2\.f32) "
E4M3 = r"cvt\.rn\.f16x2\.e4m3x2 (%r\d+), %rs\d+;"
E8M0 = r"and\.b32 \t(%r\d+), %r\d+, 255;"
LOADS = re.compile(r"(tcgen05\.ld\.[^{]*\{)([^}]*)(\}[^;]*;.*?wait::ld\.sync\.aligned;)", re.S)
LDMATRIX = re.compile(r"(ldmatrix[^{]*\{)([^}]*)(\}[^;]*;)", re.S)


def registers(loads: re.Pattern[str], each: str) -> Edit:
    """Says `each`, with the register for $, of every register that a load fills."""

    def extended(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[2].split(",")]
        return "\n".join([match[0], *(each.replace("$", name) for name in names)])

    return lambda text: loads.sub(extended, text)


def behind(pattern: str, text: str) -> Edit:
    """Says `text` behind every match of a regular expression, whose groups it may name."""
    return sub(pattern, rf"\g<0> {text}")


def _scratch(kind: str, text: str) -> str:
    return f"{{ .reg .{kind} %scratch; {text} }}"


def _chosen(text: str) -> str:
    """`text` sets the predicate $if and the register $size, the value where it holds."""
    text = text.replace("$size", "%size").replace("$if", "%if")
    return f"{{ .reg .b32 %size; .reg .pred %if; {text} selp.b32 $, %size, $, %if; }}"


def _pairs(op: str, number: int) -> str:
    """Both halves of a register through an op with a number of f16."""
    return _scratch(
        "b32",
        rf"mov.b32 %scratch, {number << 16 | number};"
        rf" {op}.f16x2 \1, \1, %scratch;",
    )


THROUGH_F16 = _scratch("b16", "cvt.rn.f16.f32 %scratch, $; cvt.f32.f16 $, %scratch;")
THROUGH_BF16 = _scratch("b16", "cvt.rn.bf16.f32 %scratch, $; cvt.f32.bf16 $, %scratch;")
SMALL_DROPPED = _chosen("abs.f32 $size, $; setp.lt.f32 $if, $size, 0f3F000000; mov.b32 $size, 0;")
CLAMPED = "min.f32 $, $, 0f45000000; max.f32 $, $, 0fC5000000;"
LARGEST = _chosen(
    "abs.f32 $size, $; setp.eq.f32 $if, $size, 0f7F800000; copysign.f32 $size, $, 0f7F7FFFFF;"
)

BUGS = [
    *(
        Planted(f"e2m1 table: {what}", "simt nvfp4", PTX, sub(str(old), str(new)))
        for what, old, new in (
            ("6.0 is 5.5", 0x0C080604, 0x0B080604),
            ("4.0 is 3.5", 0x0C080604, 0x0C070604),
            ("2.0 is 2.5", 0x0C080604, 0x0C080605),
            ("1.5 is 2", 0x03020100, 0x04020100),
            ("0.5 is 0", 0x03020100, 0x03020000),
            ("0 is 0.5", 0x3217, 0x3211),  # the selector that puts the 0 into the table
        )
    ),
    *(
        Planted(f"ue4m3 {what}", "simt nvfp4", PTX, behind(E4M3, _pairs(op, number)))
        for what, op, number in (
            ("clamped to 240", "min", 0x5B80),
            ("subnormals are 2^-6", "max", 0x2400),
            ("NaN is 448", "min", 0x5F00),
        )
    ),
    *(
        Planted(f"ue8m0 {what}", "simt mx", PTX, behind(E8M0, text))
        for what, text in (
            ("clamped to 2^63", r"min.u32 \1, \1, 190;"),
            ("clamped to 2^-63", r"max.u32 \1, \1, 64;"),
            ("NaN is 2^127", r"min.u32 \1, \1, 254;"),
        )
    ),
    Planted("ue8m0 code 0 is 0", "simt mx", PTX,
            behind(E8M0 + r"(?s:.)*?and\.b32 \t(%r\d+), %r\d+, 2139095040;",
                   _scratch("pred", r"setp.eq.b32 %scratch, \1, 0;"
                                    r" selp.b32 \2, 0, \2, %scratch;"))),
    *(
        Planted(f"result {name}", f"matmul {kind}", PTX, sub(CVT, rf"\1.{mode}.\2 "))
        for kind in ("f16", "bf16")
        for name, mode in (("rounded toward zero", "rz"), ("saturated", "rn.satfinite"))
    ),
    *(
        Planted(what, program, PTX, registers(LOADS, each))
        for program in ("matmul f16", "matmul bf16 f32", "shift-reuse f16", "smem-offset tf32")
        for what, each in (
            ("sums below 0.5 are 0", SMALL_DROPPED),
            ("sums clamped to 2048", CLAMPED),
            ("NaN is 0", _chosen("setp.nan.f32 $if, $, $; mov.b32 $size, 0;")),
            ("NaN is inf", _chosen("setp.nan.f32 $if, $, $; mov.b32 $size, 0x7F800000;")),
        )
    ),
    *(
        Planted(what, program, PTX, registers(LOADS, each))
        for program in ("matmul bf16 f32", "smem-offset tf32")
        for what, each in (
            ("sums through f16", THROUGH_F16),
            ("sums through bf16", THROUGH_BF16),
            ("sums cut to 20 bits", "and.b32 $, $, 0xFFFFFFF0;"),
            ("subnormal sums flushed", "mul.ftz.f32 $, $, 0f3F800000;"),
            ("inf is the largest number", LARGEST),
        )
    ),
    Planted("tiny sums lose their sign", "matmul f16", PTX, registers(LOADS, _chosen(
        "abs.f32 $size, $; setp.lt.f32 $if, $size, 0f32800000; mov.b32 $size, 0;"))),
    *(
        Planted(f"sums {what}", "implicit-gemm i8", PTX, registers(LOADS, each))
        for what, each in (
            ("through f32", "cvt.rz.f32.s32 $, $; cvt.rzi.s32.f32 $, $;"),
            ("of 16 bits, saturated", "min.s32 $, $, 32767; max.s32 $, $, -32768;"),
            ("of 24 bits", "shl.b32 $, $, 8; shr.s32 $, $, 8;"),
        )
    ),
    *(
        Planted(f"A {what}", program, PTX, registers(LDMATRIX, f"and.b32 $, $, {mask};"))
        for program, what, mask in (
            ("warp tf32", "cut to bf16", "0xFFFF0000"),
            ("warp tf32, K 512", "cut to bf16", "0xFFFF0000"),
            ("warp tf32", "cut to 9 bits", "0xFFFF8000"),
            ("warp bf16", "without its last bit", "0xFFFEFFFE"),
            ("warp e4m3", "without its last bits", "0xFEFEFEFE"),
        )
    ),
]  # fmt: skip

ON_FLOATS = [
    bug
    for bug in BUGS
    if "rounded toward zero" in bug.what or "bf16" in bug.what or "A cut" in bug.what
]
"""Those that random inputs show too, by the mean square of the errors."""
