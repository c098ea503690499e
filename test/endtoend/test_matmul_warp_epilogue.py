"""Epilogues on accumulators in registers: through all levels, against numpy, and broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith

from .breaking import (
    Edit,
    activation_first,
    change_operand,
    change_text,
    pick,
    run_broken,
    set_attribute,
    walk,
)
from .epilogue_cases import BIAS_RELU, CASES, LOGARITHMS, QUOTIENTS, SILU, gelu
from .epilogue_text import TRUNCATE, Fused

RESIDUAL = (
    """
    %z = arith.constant 0.0 : f32
    %e = arith.extf %r : f16 to f32
    %u = arith.addf %s, %b : f32
    %v = arith.addf %u, %e : f32
    %t = arith.maximumf %v, %z : f32
    """
    + TRUNCATE
)
INPUTS = {"b": ("f32", "n"), "r": ("f16", "mn")}
SMALL = Fused(RESIDUAL, INPUTS, m=40, n=24, k=16)
OPTIONS = {"block_m": 32, "block_n": 32, "block_k": 16, "warps_m": 2, "stages": 2}

BIASED = """
func.func @f(%a: tensor<24x32xf16>, %w: tensor<33x32xf16>, %bias: tensor<33xf32>, %r: tensor<24x33xf32>) -> tensor<24x33xf32> {
  %empty = tensor.empty() : tensor<24x33xf32>
  %init = linalg.broadcast ins(%bias : tensor<33xf32>) outs(%empty : tensor<24x33xf32>) dimensions = [0]
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %w : tensor<24x32xf16>, tensor<33x32xf16>) outs(%init : tensor<24x33xf32>) -> tensor<24x33xf32>
  %d = arith.addf %c, %r : tensor<24x33xf32>
  return %d : tensor<24x33xf32>
}
"""  # noqa: E501
"""The accumulator starts from a bias; rows of the result and the residual are odd."""


def _held(program: str, target: str = "sm_100a", orders: int = 1, **options: Any) -> None:
    kernel = tcir.compile(
        program, "matmul-warp", target=target, validate=True, orders=orders, **options
    )
    lines = kernel.report.passes
    assert {line.verdict for line in lines} == {"reference", "equal"}, str(kernel.report)
    assert not any(line.findings for line in lines)


def test_bias_residual_relu() -> None:
    _held(SMALL.linalg(), "sm_90")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        (n, t)
        for n in CASES
        for t in ("sm_80", "sm_100a")
        if t != "sm_80" or "f8" not in n + CASES[n].body
    ],
)
def test_equal_at_every_level(name: str, target: str) -> None:
    _held(CASES[name].linalg(), target, orders=3)


@pytest.mark.parametrize(
    "case",
    [
        Fused(RESIDUAL, INPUTS, m=70, n=34, k=40),
        Fused(RESIDUAL, INPUTS, m=1, n=64, k=64),
        Fused(RESIDUAL, INPUTS, m=64, n=64, k=96, batch=0),
        Fused(
            "%u = arith.addf %s, %b : f32\n %t = arith.addf %u, %r : f32\n linalg.yield %t : f32",
            {"b": ("f32", "bm"), "r": ("f32", "bmn")}, out="f32", m=20, n=36, k=32, batch=3,
            element="f32",
        ),
        Fused(
            """
            %h = arith.truncf %s : f32 to bf16
            %u = arith.mulf %h, %b : bf16
            linalg.yield %u : bf16
            """,
            {"b": ("bf16", "n")}, out="bf16", m=48, n=40, k=64, element="f8E5M2",
        ),
        Fused(
            "%u = arith.addi %s, %b : i32\n linalg.yield %u : i32",
            {"b": ("i32", "m")}, out="i32", m=33, n=20, k=64, element="i8", sums="i32", start=True,
        ),
    ],
    ids=("tails", "one row", "whole tiles", "batch", "bf16", "i32"),
)  # fmt: skip
@pytest.mark.parametrize("options", [{}, {**OPTIONS, "block_k": 32}], ids=("chosen", "two warps"))
def test_shapes_and_types(case: Fused, options: dict[str, Any]) -> None:
    _held(case.linalg(), **options)


def test_a_bias_as_the_accumulator() -> None:
    _held(BIASED)


@pytest.mark.parametrize("copy", ["tma", "cp.async"])
def test_tails_of_several_tiles(copy: str) -> None:
    case = Fused(RESIDUAL, INPUTS, m=72, n=56, k=80)
    _held(case.linalg(), "sm_90", orders=3, **OPTIONS, copy=copy)


@pytest.mark.parametrize("inputs", ["random", "integers"])
@pytest.mark.parametrize(
    "case",
    [SILU, gelu("erf"), gelu("tanh"), LOGARITHMS, QUOTIENTS],
    ids=("silu", "erf", "tanh", "logarithms", "by tanh"),
)
def test_functions_are_within_their_bound(case: Fused, inputs: Any) -> None:
    kernel = tcir.compile(
        case.linalg(), "matmul-warp", target="sm_90", validate=True, inputs=inputs
    )
    assert kernel.report.ok, str(kernel.report)
    assert kernel.report["tile-matmul-warp"].verdict in ("equal", "within bound")
    assert kernel.report["llvm-to-ptx"].verdict in ("equal", "within bound"), str(kernel.report)


def test_random_inputs_within_bound() -> None:
    case = Fused(RESIDUAL, INPUTS, m=40, n=24, k=512)
    report = tcir.compile(case.linalg(), "matmul-warp", validate=True, inputs="random").report
    assert {line.verdict for line in report.passes} <= {"reference", "equal", "within bound"}


def test_against_numpy() -> None:
    case = Fused(RESIDUAL, INPUTS, m=50, n=34, k=48)
    kernel = tcir.compile(case.linalg(), "matmul-warp", target="sm_90")
    draw = np.random.default_rng(0)
    a, w = (draw.integers(-4, 5, n).astype(np.float16) for n in ((50, 48), (48, 34)))
    bias = draw.integers(-40, 41, 34).astype(np.float32)
    residual = draw.integers(-40, 41, (50, 34)).astype(np.float16)
    out = np.zeros((50, 34), np.float16)
    kernel(a, w, bias, residual, out)
    sums = a.astype(np.float64) @ w.astype(np.float64)
    want = np.maximum(sums + bias + residual, 0).astype(np.float16)
    assert (out == want).all() and want.any() and not want.all()


def test_fp8_against_ml_dtypes() -> None:
    """A sum beyond 464 is NaN, as ml_dtypes has it."""
    case = replace(CASES["f8E4M3FN of a residual of f8E5M2, NaN beyond 464"], m=34, n=22, k=48)
    kernel = tcir.compile(case.linalg(), "matmul-warp", target="sm_90")
    draw = np.random.default_rng(1)
    a, w = (draw.integers(-8, 9, n).astype(np.float16) for n in ((34, 48), (48, 22)))
    residual = draw.standard_normal((34, 22)).astype(ml_dtypes.float8_e5m2)
    out = np.zeros((34, 22), ml_dtypes.float8_e4m3fn)
    kernel(a, w, residual, out)
    sums = (a.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
    want = (sums + residual.astype(np.float32)).astype(out.dtype)
    assert out.tobytes() == want.tobytes()
    assert np.isnan(want.astype(np.float32)).any() and np.isfinite(want.astype(np.float32)).any()


def test_fp8_needs_a_conversion() -> None:
    case = CASES["f8E4M3FN, clamped: one instruction"]
    says = r"expected f32, f16 or bf16 in an epilogue of sm_80, got f8E4M3FN .* take target sm_90"
    with pytest.raises(tcir.PassError, match=says):
        tcir.compile(case.linalg(), "matmul-warp", target="sm_80")


# --- breaks ------------------------------------------------------------------------------------

SQUARE = Fused(RESIDUAL, INPUTS, m=32, n=32, k=48)
BIAS = Fused(BIAS_RELU.body, BIAS_RELU.inputs, m=32, n=32, k=48)
TAILED = Fused(RESIDUAL, INPUTS, m=40, n=36, k=16)
FP8_PAIR = replace(CASES["f8E4M3FN of a residual of f8E5M2, NaN beyond 464"], m=32, n=32, k=16)
TILE, NVVM = "tile-matmul-warp", "convert-tc-to-nvvm"


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _before_the_last_step(module: Any) -> None:
    """The epilogue takes the accumulator that the last mma starts from, and the mma is gone."""
    op = pick(module, "tc.fragment_epilogue")
    op.operands[0] = op.operands[0].owner.operands[2]


def _sum_of_the_other_half(module: Any) -> None:
    """Two registers are exchanged: rows r and r + 8."""
    adds = list(walk(module, "arith.addf"))
    first, third = adds[0], adds[4]
    ours, others = first.operands[0], third.operands[0]
    assert ours != others
    first.operands[0], third.operands[0] = others, ours


def _bias_after(module: Any) -> None:
    """The bias is that of the row."""
    set_attribute("tc.element", "map", "affine_map<(m, n) -> (m)>")(module)


BREAKS: list[tuple[str, str, Edit, Fused, str]] = [
    ("activation on the wrong side of the bias", "fuse-epilogue", activation_first, BIAS,
     "difference"),
    ("bias of rows", "fuse-epilogue", _bias_after, SQUARE, "difference"),
    ("activation on the wrong side of the bias", TILE, activation_first, BIAS, "difference"),
    ("bias of rows", TILE, _bias_after, SQUARE, "difference"),
    ("residual transposed", TILE,
     set_attribute("tc.element", "map", "affine_map<(m, n) -> (n, m)>", 1), SQUARE, "difference"),
    ("residual and bias of the atom below", TILE,
     change_operand("tc.fragment_epilogue", 1, _plus(16)), SQUARE,
     "illegal: tile-outside-tensor"),
    ("the same, where tiles have tails", TILE,
     change_operand("tc.fragment_epilogue", 1, _plus(16)), TAILED, "difference"),
    ("no tails", TILE, set_attribute("tc.fragment_epilogue", "tails", '"inner"'), TAILED,
     "illegal: tile-outside-tensor"),
    ("the last step is missing", "double-buffer-fragments", _before_the_last_step, SQUARE,
     "difference"),
    ("sums of the other half", NVVM, _sum_of_the_other_half, SQUARE, "difference"),
    ("residual of 8 rows above", NVVM,
     change_text(r"(llvm.getelementptr %\w+\[)512(\] : \(!llvm.ptr<1>\))", r"\g<1>0\2"), SQUARE,
     "difference"),
    ("a code in the other byte", NVVM,
     change_text(r"(e4m3x2.f32 \$0, )\$2, \$1", r"\g<1>$1, $2"), FP8_PAIR, "difference"),
    ("bias of the neighbouring atom", NVVM,
     change_text(r"(llvm.getelementptr %\w+\[)32(\] : \(!llvm.ptr<1>\))", r"\g<1>0\2"), SQUARE,
     "difference"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "edit", "program", "by"),
    [
        pytest.param(at, edit, program, by, id=f"{at}: {what}")
        for what, at, edit, program, by in BREAKS
    ],
)
def test_break(at: str, edit: Edit, program: Fused, by: str) -> None:
    pipeline = tcir.named_pipeline("matmul-warp", **OPTIONS)
    caught = run_broken(program.linalg(), pipeline, at, edit, orders=1)
    assert caught, "nothing noticed the break"
    assert (caught.at, caught.by) == (at, by), caught.text
