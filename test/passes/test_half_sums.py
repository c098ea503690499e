"""Products whose sums are of f16 or bf16: in f32, rounded once, on tensor cores and CUDA cores."""

# ruff: noqa: E501  (lines of MLIR)

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.module.rewrites.half_sums import widen_half_sums

FORMS = {
    "matmul": ("12x16", "16x24", "12x24"),
    "batch_matmul": ("2x12x16", "2x16x24", "2x12x24"),
    "matvec": ("12x16", "16", "12"),
    "conv_2d_nhwc_hwcf": ("1x5x6x16", "2x2x16x8", "1x4x5x8"),
}


def program(form: str, kind: str, total: str = "", start: str = "0.0") -> str:
    a, b, out = FORMS[form]
    total = total or kind
    a, b, out = f"tensor<{a}x{kind}>", f"tensor<{b}x{kind}>", f"tensor<{out}x{total}>"
    return f"""func.func @f(%a: {a}, %b: {b}) -> {out} {{
  %z = arith.constant {start} : {total}
  %e = tensor.empty() : {out}
  %i = linalg.fill ins(%z : {total}) outs(%e : {out}) -> {out}
  %c = linalg.{form} ins(%a, %b : {a}, {b}) outs(%i : {out}) -> {out}
  return %c : {out}
}}
"""


def widened(text: str) -> str:
    with ir.Context() as context:
        tc.load(context)
        module = ir.Module.parse(text)
        with ir.Location.unknown():
            widen_half_sums(module)
        module.operation.verify()
        return str(module)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_are_of_f32(form: str, kind: str) -> None:
    text = widened(program(form, kind))
    assert f"linalg.{form}" not in text and text.count("arith.truncf") == 1
    assert re.search(r"arith.addf %\w+, %\w+ : f32", text)


@pytest.mark.parametrize(
    "text",
    [
        program("matmul", "f16", "f32"),
        program("matmul", "f32"),
        program("matmul", "f64"),
        # no product: the larger of two, as pools have it
        "func.func @f(%x: tensor<8x4xf16>) -> tensor<8xf16> {\n"
        "  %z = arith.constant 0.0 : f16\n  %e = tensor.empty() : tensor<8xf16>\n"
        "  %i = linalg.fill ins(%z : f16) outs(%e : tensor<8xf16>) -> tensor<8xf16>\n"
        "  %y = linalg.reduce {arith.addf} ins(%x : tensor<8x4xf16>) outs(%i : tensor<8xf16>) dimensions = [1]\n"
        "  return %y : tensor<8xf16>\n}",
    ],
    ids=["f32 sums", "f32", "f64", "a sum"],
)
def test_others_stay(text: str) -> None:
    assert "truncf" not in widened(text)


@pytest.mark.parametrize(
    ("form", "kind", "pipeline"),
    [(form, kind, "layers") for form in FORMS for kind in ("f16", "bf16")]
    + [("matmul", "f16", "matmul-warp"), ("matmul", "f16", "simt-elementwise")],
)
def test_every_level(form: str, kind: str, pipeline: str) -> None:
    report = tcir.validate(program(form, kind), pipeline, strict=True)
    assert report.verdict == "held", report


@pytest.mark.parametrize(("kind", "total"), [("f64", "f64"), ("i16", "i32"), ("i32", "i64")])
def test_types_of_no_tensor_core(kind: str, total: str) -> None:
    """CUDA cores multiply them."""
    text = program("matmul", kind, total, "0.0" if kind == "f64" else "0")
    assert tcir.validate(text, "layers", strict=kind == "f64").verdict == "held"


@pytest.mark.parametrize("start", ["0.0", "3.0"])
def test_one_rounding(start: str) -> None:
    """Products that cancel but for what f16 has lost."""
    dtype: Any = np.dtype(ml_dtypes.bfloat16)
    a = np.ones((12, 16)) * np.resize([256, 1, -256, 0.5], 16)
    b = np.ones((16, 24))
    result = np.zeros((12, 24), dtype)
    tcir.compile(program("matmul", "bf16", start=start), "layers")(
        a.astype(dtype), b.astype(dtype), result
    )
    assert (result.astype(float) == float(start) + 6).all()
