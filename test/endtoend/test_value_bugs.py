"""Bugs that show on some values only: each changes the PTX of one kernel, and is `different`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest

import tcir
from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import Validator

from .block_scaled_text import F8A, F8B, UE8M0, BlockScaled
from .breaking import PtxCheck
from .linalg_text import Conv, Matmul

NVFP4 = BlockScaled(m=64, k=256)
MX = BlockScaled(m=64, k=512, scale=UE8M0, block=32, a=F8A, b=F8B)
PROGRAMS = {
    "gemv-simt ue4m3": ("gemv-simt", NVFP4.linalg()),
    "gemv-simt ue8m0": ("gemv-simt", MX.linalg()),
    "matmul f16": ("matmul", Matmul(128, 32, 64, out="f16").text()),
    "matmul bf16": ("matmul", Matmul(128, 32, 64, element="bf16", out="bf16").text()),
    "matmul f32": ("matmul", Matmul(128, 32, 64).text()),
    "matmul bf16 to f32": ("matmul", Matmul(128, 32, 64, element="bf16").text()),
    "matmul-warp tf32": ("matmul-warp", Matmul(64, 32, 96, element="f32").text()),
    "matmul-warp tf32, K 512": ("matmul-warp", Matmul(64, 32, 512, element="f32").text()),
    "conv i8": (
        "conv-implicit-gemm",
        Conv(1, 9, 9, 192, 32, 3, 3, element="i8", out="i32").text(),
    ),
}
F16X2 = r"(cvt)\.rn\.(b?f16x2\.f32) "
E4M3 = r"cvt\.rn\.f16x2\.e4m3x2 (%r\d+), %rs\d+;"
E8M0 = r"and\.b32 \t(%r\d+), %r\d+, 255;"
LOADED = r"tcgen05\.wait::ld\.sync\.aligned;"
STORED = r"(?=st\.global\.b32 \t\[%rd\d+\], (%r\d+);)"
REGISTERS = r"(tcgen05\.ld\.[^{]*\{)([^}]*)(\}[^;]*;.*?wait::ld\.sync\.aligned;)"
LDMATRIX = r"(ldmatrix[^{]*\{)([^}]*)(\}[^;]*;)"


@dataclass(frozen=True)
class Bug:
    """All matches of `pattern` are replaced; `each` is said of every register in its braces."""

    what: str
    program: str
    pattern: str
    replacement: str = ""
    each: str = ""

    def edit(self, ptx: str) -> str:
        def extended(match: re.Match[str]) -> str:
            words = [self.each.replace("$", name.strip()) for name in match[2].split(",")]
            return "\n".join([match[0], *words])

        new = re.sub(self.pattern, extended if self.each else self.replacement, ptx, flags=re.S)
        assert new != ptx, "the edit changes nothing"
        return new


def _scratch(kind: str, text: str) -> str:
    return f"{{ .reg .{kind} %scratch; {text} }}"


def _through_f16(mode: str = "rn") -> str:
    return _scratch("b16", f"cvt.{mode}.f16.f32 %scratch, $; cvt.f32.f16 $, %scratch;")


def _chosen(text: str) -> str:
    """`text` sets the predicate $if and the register $size, the value where it holds."""
    text = text.replace("$size", "%size").replace("$if", "%if")
    return f"{{ .reg .b32 %size; .reg .pred %if; {text} selp.b32 $, %size, $, %if; }}"


SMALL_DROPPED = _chosen("abs.f32 $size, $; setp.lt.f32 $if, $size, 0f3F000000; mov.b32 $size, 0;")
CLAMPED = "min.f32 $, $, 0f45000000; max.f32 $, $, 0fC5000000;"
BUGS = [
    *(
        Bug(f"e2m1 table: {what}", "gemv-simt ue4m3", old, new)
        for what, old, new in (
            ("6.0 is 5.5", "201852420", str(0x0B080604)),
            ("4.0 is 3.5", "201852420", str(0x0C070604)),
            ("2.0 is 2.5", "201852420", str(0x0C080605)),
            ("1.5 is 2", "50462976", str(0x04020100)),
            ("0.5 is 0", "50462976", str(0x03020000)),
            ("0 is 0.5", "50462976", str(0x03020101)),
        )
    ),
    Bug("ue4m3 clamped to 240", "gemv-simt ue4m3", E4M3,
        r"\g<0> " + _scratch("b32", r"mov.b32 %scratch, 0x5B805B80;"
                             r" min.f16x2 \1, \1, %scratch;")),
    Bug("ue4m3 subnormals are 2^-6", "gemv-simt ue4m3", E4M3,
        r"\g<0> " + _scratch("b32", r"mov.b32 %scratch, 0x24002400;"
                             r" max.f16x2 \1, \1, %scratch;")),
    Bug("ue8m0 clamped to 2^63", "gemv-simt ue8m0", E8M0, r"\g<0> min.u32 \1, \1, 190;"),
    Bug("ue8m0 clamped to 2^-63", "gemv-simt ue8m0", E8M0, r"\g<0> max.u32 \1, \1, 64;"),
    Bug("ue8m0 code 0 is 0", "gemv-simt ue8m0",
        E8M0 + r".*?and\.b32 \t(%r\d+), %r\d+, 2139095040;",
        r"\g<0> " + _scratch("pred", r"setp.eq.b32 %scratch, \1, 0;"
                             r" selp.b32 \2, 0, \2, %scratch;")),
    *(
        Bug(f"result to {kind} by {name}", f"matmul {kind}", F16X2, rf"\1.{mode}.\2 ")
        for kind in ("f16", "bf16")
        for name, mode in (("rz", "rz"), ("satfinite", "rn.satfinite"))
        if (kind, name) != ("bf16", "satfinite")  # no result of f32 leaves bf16
    ),
    *(
        Bug(f"result {what}", f"matmul {kind}", REGISTERS, each=each)
        for kind in ("f32", "f16")
        for what, each in (
            ("below 0.5 dropped", SMALL_DROPPED),
            ("clamped to 2048", CLAMPED),
        )
    ),
    Bug("f32 result through f16", "matmul f32", REGISTERS, each=_through_f16()),
    Bug("f32 result through bf16", "matmul f32", REGISTERS,
        each=_scratch("b16", "cvt.rn.bf16.f32 %scratch, $; cvt.f32.bf16 $, %scratch;")),
    Bug("f32 result cut to 20 bits", "matmul f32", REGISTERS, each="and.b32 $, $, 0xFFFFFFF0;"),
    Bug("i32 result through f32", "conv i8", REGISTERS,
        each="cvt.rz.f32.s32 $, $; cvt.rzi.s32.f32 $, $;"),
    Bug("i32 result saturated to 16 bits", "conv i8", REGISTERS,
        each="min.s32 $, $, 32767; max.s32 $, $, -32768;"),
    Bug("ue4m3 NaN is 448", "gemv-simt ue4m3", E4M3,
        r"\g<0> " + _scratch("b32", r"mov.b32 %scratch, 0x5F005F00;"
                             r" min.f16x2 \1, \1, %scratch;")),
    Bug("ue8m0 NaN is 2^127", "gemv-simt ue8m0", E8M0, r"\g<0> min.u32 \1, \1, 254;"),
    *(
        Bug(f"result {what}", "matmul bf16 to f32", REGISTERS, each=each)
        for what, each in (
            ("subnormals flushed", "mul.ftz.f32 $, $, 0f3F800000;"),
            ("inf is the largest number",
                _chosen("abs.f32 $size, $; setp.eq.f32 $if, $size, 0f7F800000;"
                        " copysign.f32 $size, $, 0f7F7FFFFF;")),
            ("NaN is 0", _chosen("setp.nan.f32 $if, $, $; mov.b32 $size, 0;")),
            ("NaN is inf", _chosen("setp.nan.f32 $if, $, $; mov.b32 $size, 0x7F800000;")),
        )
    ),
    Bug("result without the sign of zero", "matmul f16", REGISTERS,
        each=_chosen("abs.f32 $size, $; setp.lt.f32 $if, $size, 0f32800000; mov.b32 $size, 0;")),
    Bug("tf32 A cut to bf16", "matmul-warp tf32", LDMATRIX, each="and.b32 $, $, 0xFFFF0000;"),
    Bug("tf32 A cut to 9 bits", "matmul-warp tf32", LDMATRIX, each="and.b32 $, $, 0xFFFF8000;"),
]  # fmt: skip


RANDOM_BUGS = [
    bug for bug in BUGS if "by rz" in bug.what or "tf32 A" in bug.what or "bf16" in bug.what
] + [
    Bug("tf32 A cut to bf16", "matmul-warp tf32, K 512", LDMATRIX, each="and.b32 $, $, 0xFFFF0000;")
]


@cache
def _check(name: str) -> PtxCheck:
    pipeline, program = PROGRAMS[name]
    return PtxCheck(program, tcir.compile(program, pipeline))


@pytest.mark.parametrize("program", PROGRAMS)
def test_unbroken(program: str) -> None:
    check = _check(program)
    caught = check.run(check.kernel.ptx, 1)
    assert not caught, caught.text


def _run_on_floats(program: str, ptx: str, seed: int) -> Line:
    validator = Validator(Settings(seed=seed, inputs="random"))
    with mlir_context() as context:
        validator.start(load_module(PROGRAMS[program][1], context))
    return validator.check_ptx(ptx, _check(program).kernel.launches, Line(0, "llvm-to-ptx"))


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "conv i8"])
def test_unbroken_on_floats(program: str) -> None:
    for seed in (1, 2, 3):
        line = _run_on_floats(program, _check(program).kernel.ptx, seed)
        assert line.verdict in ("equal", "within bound"), str(line)


@pytest.mark.parametrize("bug", RANDOM_BUGS, ids=lambda bug: f"{bug.program}: {bug.what}")
def test_value_bug_on_floats(bug: Bug) -> None:
    """On random inputs the mean square shows them, where the worst case would let them pass."""
    line = _run_on_floats(bug.program, bug.edit(_check(bug.program).kernel.ptx), 1)
    assert line.verdict == "different", str(line)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.program}: {bug.what}")
def test_value_bug(bug: Bug) -> None:
    check = _check(bug.program)
    caught = check.run(bug.edit(check.kernel.ptx), 1)
    assert caught.by == "difference", caught.text or "nothing noticed the bug"
