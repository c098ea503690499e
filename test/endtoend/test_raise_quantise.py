"""Block quantisation in linalg: which spellings are raised, on every kind of f32, and which not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp.tensor import run as execute
from tcir.passes.raising import raise_quantise
from tcir.passmanager.remarks import remarks_to

from . import quantise_oracle as oracle
from . import quantise_text as text
from .breaking import run_broken, set_attribute
from .quantise_text import Spelling
from .test_gemm_quantise import hard_rows

Array = np.ndarray[Any, Any]
NVFP4, MXFP4 = ("f4E2M1FN", "f8E4M3FN"), ("f4E2M1FN", "f8E8M0FNU")
E4M3, E5M2 = ("f8E4M3FN", "f8E8M0FNU"), ("f8E5M2", "f8E8M0FNU")
TIMES = text.PRODUCT + text.CLAMP + text.GUARD

RAISED = {
    "NVFP4": Spelling(NVFP4, text.NVFP4, m=200, n=240),
    "NVFP4, times norm, scales in blocks": Spelling(
        NVFP4, text.NVFP4, m=200, n=240, norm=True, layout="blocked"
    ),
    "NVFP4 as by torch-mlir": Spelling(
        NVFP4, text.TORCH_CLAMP, m=200, n=256, keep=True, start="0xFF800000"
    ),
    "MXFP4 by a shift": Spelling(MXFP4, text.SHIFT, m=200, n=160),
    "MXFP4 by a mask, times the reciprocal": Spelling(MXFP4, text.MASK, TIMES, m=200, n=256),
    "MXFP8, e4m3, by a mask, scales in blocks": Spelling(
        E4M3, text.MASK, m=200, n=160, layout="blocked", keep=True
    ),
    "MXFP8, e5m2, by floor(log2) in f64": Spelling(E5M2, text.LOGARITHM, m=200, n=256),
    "MXFP8, e4m3, rounded up": Spelling(E4M3, text.CARRY, m=200, n=256),
    "MXFP4, rounded up": Spelling(MXFP4, text.CARRY, m=200, n=256),
    "MXFP8, e5m2, rounded up": Spelling(E5M2, text.CARRY, m=200, n=256),
}


def parsed(program: str) -> Any:
    context = ir.Context()
    tc.load(context)
    with context:
        return ir.Module.parse(program)


def raised(program: str) -> tuple[Any, str]:
    """The module after the pass, and its remarks."""
    module, said = parsed(program), list[str]()
    with module.context, remarks_to(lambda _, words: said.append(words)):
        raise_quantise.RaiseQuantise().run(module)
    assert module.operation.verify()
    return module, "\n".join(said)


def names(module: Any) -> list[str]:
    (function,) = module.body.operations
    return [op.operation.name for op in function.regions[0].blocks[0]]


def outputs(module: Any, spelling: Spelling, inputs: list[Array]) -> list[Array]:
    shapes = [tuple(map(int, re.findall(r"(\d+)x", each))) for each in spelling.results]
    specs = [
        OutputSpec(shape, np.dtype(oracle.DTYPES[kind]))
        for shape, kind in zip(shapes, spelling.formats, strict=True)
    ]
    found = execute(module, "f", inputs, specs).outputs
    return [np.ascontiguousarray(each).view(np.uint8) for each in found]


@pytest.mark.parametrize("name", RAISED)
def test_raised(name: str) -> None:
    """Before and after it has the bytes of NumPy: next to ties, of all sizes, zeros, NaN."""
    spelling = RAISED[name]
    module, said = raised(spelling.function())
    assert names(module) == ["tc.quantise_blocks", "func.return"], said
    assert "raised to tc.quantise_blocks" in said
    norm = 0.3 if spelling.norm else 1.0
    x = hard_rows(spelling.m, spelling.n, *spelling.formats, norm)
    inputs = [x, np.array(norm, np.float32)] if spelling.norm else [x]
    rounding = "rceil" if "CARRIED" in spelling.scale else "floor"
    with np.errstate(all="ignore"):
        want, want_scales = oracle.quantised(x, *spelling.formats, norm, rounding)
    if spelling.layout == "blocked":
        want_scales = oracle.blocked(want_scales)
    for each in (parsed(spelling.function()), module):
        codes, scales = outputs(each, spelling, inputs)
        assert (codes == want).all(), np.argwhere(codes != want)[:4]
        assert (scales.reshape(want_scales.shape) == want_scales).all()


# --- what is refused, and the first number that differs ----------------------------------------


PLAIN = RAISED["NVFP4"]
SHIFTED = RAISED["MXFP4 by a shift"]


def changed(spelling: Spelling, old: str, new: str) -> Spelling:
    """With this in the scale, or in the element."""
    assert (spelling.scale + spelling.element).count(old) == 1
    return replace(
        spelling,
        scale=spelling.scale.replace(old, new),
        element=spelling.element.replace(old, new),
    )


ONE_NUMBER = """
    %odd = arith.constant 3.1415927 : f32
    %is_odd = arith.cmpf oeq, %amax, %odd : f32
    %other = arith.constant 1.0 : f32
    %changed = arith.select %is_odd, %other, %known : f32
    %scale = arith.truncf %changed : f32 to f8E4M3FN"""
REFUSED = {
    "amax / 448": (
        changed(PLAIN, "6.0 : f32", "448.0 : f32"),
        r"amax / 6 to nearest even, at most 448; got 0x01 .* instead of 0x02",
    ),
    "times 1 / 6": (
        changed(
            changed(PLAIN, "6.0 : f32", "0.16666667 : f32"),
            "arith.divf %amax, %six", "arith.mulf %amax, %six",
        ),
        "amax / 6 to nearest even",
    ),
    "no least scale": (
        changed(PLAIN, "arith.select %some, %raised", "arith.select %some, %capped"),
        r"at least 2\^-9 if amax is not 0; got 0x00 \(0\) instead of 0x01 .* is 1\.4\S*e-45",
    ),
    "a least scale for zeros as well": (
        changed(PLAIN, "arith.select %some, %raised, %zero", "arith.select %some, %raised, %least"),
        r"a block of zeros has the scale code 0; got 0x01 .* instead of 0x00",
    ),
    "scales beyond 448": (
        changed(PLAIN, "448.0 : f32", "1000.0 : f32"),
        r"at most 448; got 0x7f \(nan\) instead of 0x7e \(448\)",
    ),
    "infinities saturate": (
        changed(PLAIN, "%finite, %number, %nan", "%finite, %number, %most"),
        r"a NaN or an infinity has the scale NaN; got 0x7e .* instead of 0x7f .* is inf",
    ),
    "one number of all": (
        changed(PLAIN, "\n    %scale = arith.truncf %known : f32 to f8E4M3FN", ONE_NUMBER),
        r"got 0x38 \(1\) instead of 0x30 \(0\.5\) where amax.* is 3\.14159",
    ),
    "NaN left out of the maximum": (
        replace(PLAIN, maximum="arith.maxnumf"),
        "expected arith.maximumf, got arith.maxnumf",
    ),
    "a maximum that starts from epsilon": (
        replace(PLAIN, start="1.0e-12"), "starts from 0 or less, got 1e-12",
    ),
    "codes of NaN": (
        changed(PLAIN, "%unknown, %zero, %clamped", "%unknown, %clamped, %clamped"),
        r"codes are 0 where the scale is NaN; got 0x07 .* instead of 0x00",
    ),
    "zeros without sign": (
        changed(
            PLAIN, "%unknown, %zero, %clamped : f32",
            "%unknown, %zero, %clamped : f32\n    %nothing = arith.cmpf oeq, %y, %zero : f32\n"
            "    %q = arith.select %nothing, %zero, %q0 : f32",
        ),
        r"zeros keep their sign; got 0x00 .* instead of 0x08 .* where y is -0\.0",
    ),
    "by the reciprocal of a ue4m3": (
        replace(PLAIN, element=TIMES.replace("%one, %wide", "%one, %wide")),
        r"rounded once to nearest even",
    ),
    "not saturated, e4m3": (
        replace(
            RAISED["MXFP8, e4m3, by a mask, scales in blocks"],
            element=(text.QUOTIENT + text.GUARD).replace("%clamped", "%quotient"),
        ),
        r"and saturated; got 0x[7f]f \(nan\) instead of 0x[7f]e",
    ),
    "floor(log2) in f32": (
        replace(
            RAISED["MXFP8, e5m2, by floor(log2) in f64"],
            scale=text.LOGARITHM.replace("    %wide = arith.extf %amax : f32 to f64\n", "")
            .replace("%wide", "%amax").replace("f64", "f32")
            .replace("    %number = arith.truncf %power : f32 to f32\n", "")
            .replace("%finite, %number", "%finite, %power"),
        ),
        r"2\^\(floor\(log2 amax\) - 15\), the exponent of its bits \(log2 in f32 is rounded up",
    ),
    "rounded to a power of two by truncf": (
        replace(
            SHIFTED,
            scale="""
    %four = arith.constant 0.25 : f32
    %less = arith.mulf %amax, %four : f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %less, %nan : f32
    %scale = arith.truncf %known : f32 to f8E8M0FNU""",
        ),
        r"at least 2\^-127; got 0xff \(nan\) instead of 0x00",
    ),
    "another order of scales": (
        replace(RAISED["NVFP4, times norm, scales in blocks"], layout="exchanged"),
        "r % 32 \\* 16 .*, got another order",
    ),
    "norm with ue8m0 scales": (replace(SHIFTED, norm=True), "norm must be a tensor<f32>, and with"),
    "blocks of 32 with ue4m3": (
        replace(PLAIN, formats=("f8E4M3FN", "f8E4M3FN")), r"got f8E4M3FN with f8E4M3FN \(16\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    spelling, words = REFUSED[name]
    program = spelling.function()
    if name == "zeros without sign":
        program = program.replace("%q = arith.select %unknown", "%q0 = arith.select %unknown")
    module, said = raised(program)
    assert "tc.quantise_blocks" not in names(module)
    assert re.search("not raised to tc.quantise_blocks: .*" + words, said), said


def test_the_difference_is_one() -> None:
    """What a remark names: at that number the program gives other bytes than NumPy."""
    spelling, _ = REFUSED["one number of all"]
    for number, same in ((3.1415927, False), (np.nextafter(np.float32(3.1415927), 4), True)):
        x = np.full((spelling.m, spelling.n), np.float32(number))
        _, scales = outputs(parsed(spelling.function()), spelling, [x])
        assert (scales == oracle.quantised(x, *NVFP4)[1]).all() == same


# --- in the pipeline ---------------------------------------------------------------------------


SHORT = "builtin.module(raise-quantise,fuse-epilogue,raise-to-tc)"


@pytest.mark.parametrize("inputs", ["integers", "random"])
def test_linear_layer_on_tensors(inputs: str) -> None:
    spelling = Spelling(NVFP4, text.NVFP4, n=80, layout="blocked")
    report = tcir.validate(spelling.linear(), SHORT, inputs=inputs)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert inputs == "random" or re.search("special: .*NaN", str(report))


@pytest.mark.parametrize("inputs", ["integers", "random"])
@pytest.mark.parametrize(
    "spelling",
    [
        Spelling(NVFP4, text.NVFP4, n=80),
        Spelling(NVFP4, text.TORCH_CLAMP, m=136, keep=True, norm=True, layout="blocked"),
        Spelling(MXFP4, text.SHIFT, n=96),
        Spelling(E4M3, text.MASK, n=160, layout="blocked"),
        Spelling(E5M2, text.CARRY, n=32),
    ],
)
def test_linear_layer_at_every_level(spelling: Spelling, inputs: str) -> None:
    report = tcir.validate(
        spelling.linear(256 if inputs == "random" else 16), "gemm", inputs=inputs
    )
    verdicts = {line.verdict for line in report.passes}
    assert verdicts <= {"reference", "equal", "within bound"}, str(report)
    assert inputs == "random" or verdicts == {"reference", "equal"}, str(report)


def test_break_in_the_pass() -> None:
    """Another rounding of scales than the program's is laid to this pass."""
    spelling = Spelling(MXFP4, text.CARRY)
    edit = set_attribute("tc.quantise_blocks", "scale_rounding", '"floor"')
    caught = run_broken(spelling.linear(), tcir.Pipeline([SHORT]), "raise-quantise", edit)
    assert caught and caught.at == "raise-quantise" and caught.by == "difference"
