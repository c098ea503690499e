"""Matrix products with epilogues, through all levels, and against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm

from .breaking import (
    Broken,
    Edit,
    activation_first,
    change_operand,
    change_text,
    pick,
    run_broken,
    set_attribute,
)
from .epilogue_cases import BIAS_RELU, CASES, LOGARITHMS, QUOTIENTS, SILU, gelu
from .epilogue_text import Fused

Array = np.ndarray[Any, Any]

FP8 = [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)]


@pytest.mark.parametrize(
    "name",
    CASES,
)
def test_equal_at_every_level(name: str, orders: int) -> None:
    report = tcir.validate(CASES[name].linalg(), "gemm", orders=orders)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def test_256_192_128() -> None:
    case = Fused(BIAS_RELU.body, BIAS_RELU.inputs, m=256, n=192, k=128)
    for seed in range(3):
        report = tcir.validate(case.linalg(), "gemm", seed=seed, orders=10)
        assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


LINEAR = """
func.func @linear(%x: tensor<40x16xf16>, %w: tensor<24x16xf16>, %bias: tensor<24xf16>) -> tensor<40x24xf16> {
  %zero = arith.constant 0.0 : f32
  %turned_ = tensor.empty() : tensor<16x24xf16>
  %turned = linalg.transpose ins(%w : tensor<24x16xf16>) outs(%turned_ : tensor<16x24xf16>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<40x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  %c = linalg.matmul ins(%x, %turned : tensor<40x16xf16>, tensor<16x24xf16>) outs(%init : tensor<40x24xf32>) -> tensor<40x24xf32>
  %half = arith.truncf %c : tensor<40x24xf32> to tensor<40x24xf16>
  %to = tensor.empty() : tensor<40x24xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%half, %bias : tensor<40x24xf16>, tensor<24xf16>) outs(%to : tensor<40x24xf16>) {
  ^bb0(%s: f16, %b: f16, %o: f16):
    %t = arith.addf %s, %b : f16
    linalg.yield %t : f16
  } -> tensor<40x24xf16>
  return %y : tensor<40x24xf16>
}
"""  # noqa: E501


def test_linear_layer() -> None:
    """A layer of torch.nn.Linear as torch-mlir writes it: transposed weights, a bias of f16."""
    report = tcir.validate(LINEAR, "gemm")
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(("element", "dtype"), FP8)
def test_fp8_against_ml_dtypes(element: str, dtype: Any) -> None:
    """All finite f16 as sums: ties, subnormals, and what is too large for fp8."""
    body = f"%h = arith.truncf %s : f32 to {element}\n linalg.yield %h : {element}"
    kernel = tcir.compile(Fused(body, out=element, m=128, n=512, k=128).linalg(), "gemm")
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(128, 512)
    numbers = np.where(np.isfinite(numbers), numbers, 0).astype(np.float16)
    out = np.zeros((128, 512), dtype)
    kernel(np.eye(128, dtype=np.float16), numbers, out)
    want = (numbers.astype(np.float32) + 0).astype(dtype)  # sums are never -0
    assert (out.view(np.uint8) == want.view(np.uint8)).all()
    assert len(np.unique(want.view(np.uint8))) > 240


@pytest.mark.parametrize("caught_by", ["convert-tc-to-nvvm"])
def test_fp8_that_saturates_where_truncf_gives_nan(caught_by: str) -> None:
    case = CASES["f8E4M3FN, NaN beyond 464; rows of 17 bytes"]
    passes = tcir.named_pipeline("gemm")
    caught = run_broken(case.linalg(), passes, caught_by, change_text(r"4\.640000e\+02", "1.0e+38"))
    assert caught and (caught.at, caught.by) == (caught_by, "difference"), caught


def test_against_numpy() -> None:
    kernel = tcir.compile(BIAS_RELU.linalg(), "gemm")
    draw = np.random.default_rng(0)
    a, w = (draw.integers(-4, 5, n).astype(np.float16) for n in ((136, 40), (40, 40)))
    bias = draw.integers(-40, 41, 40).astype(np.float32)
    out = np.zeros((136, 40), np.float16)
    kernel(a, w, bias, out)
    sums = a.astype(np.float64) @ w.astype(np.float64)
    want = np.maximum(sums + bias, 0).astype(np.float16)
    assert (out == want).all() and want.any() and not want.all()


@pytest.mark.parametrize(
    ("case", "inputs"),
    [
        pytest.param(SILU, "random", id="silu, random"),
        pytest.param(SILU, "integers", id="silu, exact sums"),
        pytest.param(gelu("erf"), "random", id="erf"),
        pytest.param(gelu("tanh"), "integers", id="tanh"),
        pytest.param(LOGARITHMS, "integers", id="logarithms"),
        pytest.param(QUOTIENTS, "integers", id="by tanh"),
    ],
)
def test_functions_are_within_their_bound(case: Fused, inputs: Any) -> None:
    report = tcir.validate(case.linalg(), "gemm", inputs=inputs)
    assert report.ok, str(report)
    assert report["tile-gemm"].verdict in ("equal", "within bound")
    assert report["llvm-to-ptx"].verdict == "within bound", str(report)


@pytest.mark.parametrize("inputs", ["random", "integers"])
def test_a_coarser_exp_is_beyond_the_bound(inputs: Any) -> None:
    """log2(e) of 10 bits in the place of 24."""
    edit = change_text(r"dense<1\.4426\w*(\.\w+)?(e\+00)?>", "dense<1.4423828>")
    damaged = Broken(ConvertTcToNvvm(), edit)
    passes = tcir.named_pipeline("gemm").replace("convert-tc-to-nvvm", damaged)
    report = tcir.validate(SILU.linalg(), passes, inputs=inputs)
    assert report["assign-roles"].verdict in ("equal", "within bound"), str(report)
    assert report["convert-tc-to-nvvm"].verdict == "different", str(report)


# --- breaks ------------------------------------------------------------------------------------

SQUARE = Fused(BIAS_RELU.body, BIAS_RELU.inputs, m=40, n=40, k=16)


def _plus(amount: int) -> Callable[[Any], Any]:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _along_rows(module: Any) -> None:
    """A bias per row in the place of one per column."""
    load = pick(module, "tc.load_rows")
    load.attributes["row_dim"] = load.attributes["column_dim"]
    del load.attributes["column_dim"]


BREAKS: list[tuple[str, str, Edit]] = [
    ("activation on the wrong side of the bias", "fuse-epilogue", activation_first),
    ("bias of the wrong axis", "fuse-epilogue",
     set_attribute("tc.element", "map", "affine_map<(m, n) -> (m)>")),
    ("no bias", "raise-to-tc", lambda m: _pass_on(m, "arith.addf", 0)),
    ("bias of another tile", "tile-gemm", change_operand("tc.load_rows", 1, _plus(16))),
    ("bias of the wrong axis", "tile-gemm", _along_rows),
    ("activation on the wrong side of the bias", "tile-gemm", activation_first),
    ("bias of another tile", "assign-roles", change_operand("tc.load_rows", 1, _plus(16))),
    ("bias of other columns", "convert-tc-to-nvvm",
     change_text(r"(llvm.getelementptr %\w+\[)16(\] : \(!llvm.ptr<1>\))", r"\g<1>0\2")),
]  # fmt: skip


def _pass_on(module: Any, name: str, operand: int) -> None:
    op = pick(module, name)
    op.results[0].replace_all_uses_with(op.operands[operand])


@pytest.mark.parametrize(
    ("at", "edit"),
    [pytest.param(at, edit, id=f"{at}: {what}") for what, at, edit in BREAKS],
)
def test_break(at: str, edit: Edit) -> None:
    caught = run_broken(SQUARE.linalg(), tcir.named_pipeline("gemm"), at, edit)
    assert caught, "nothing noticed the break"
    assert (caught.at, caught.by) == (at, "difference"), caught.text
