"""What is made of frozen arguments alone is computed by launches of its own, run once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import func, ir
from tcir.passes.analysis.frozen import computed_once
from tcir.program.frozen import split
from tcir.program.source import load_module, mlir_context

Array = np.ndarray[Any, Any]
M, N, K = 40, 48, 32
TEXT = f"""
#rows = affine_map<(m, n) -> (m, n)>
#columns = affine_map<(m, n) -> (n)>
#vector = affine_map<(n) -> (n)>
func.func @norm(%x: tensor<{M}x{K}xf16>, %w: tensor<{K}x{N}xf16>, %gamma: tensor<{N}xf16>,
                %var: tensor<{N}xf16>) -> tensor<{M}x{N}xf16>
    attributes {{tc.frozen = array<i64: 1, 2, 3>}} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{M}x{N}xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32>
  %s = linalg.matmul ins(%x, %w : tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      outs(%i : tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32>
  %v = tensor.empty() : tensor<{N}xf32>
  %factor = linalg.generic {{indexing_maps = [#vector, #vector, #vector],
      iterator_types = ["parallel"]}} ins(%gamma, %var : tensor<{N}xf16>, tensor<{N}xf16>)
      outs(%v : tensor<{N}xf32>) {{
  ^bb0(%g: f16, %a: f16, %out: f32):
    %gw = arith.extf %g : f16 to f32
    %aw = arith.extf %a : f16 to f32
    %r = math.rsqrt %aw : f32
    %f = arith.mulf %gw, %r : f32
    linalg.yield %f : f32
  }} -> tensor<{N}xf32>
  %h = tensor.empty() : tensor<{M}x{N}xf16>
  %y = linalg.generic {{indexing_maps = [#rows, #columns, #rows],
      iterator_types = ["parallel", "parallel"]}} ins(%s, %factor : tensor<{M}x{N}xf32>,
      tensor<{N}xf32>) outs(%h : tensor<{M}x{N}xf16>) {{
  ^bb0(%a: f32, %f: f32, %out: f16):
    %p = arith.mulf %a, %f : f32
    %t = arith.truncf %p : f32 to f16
    linalg.yield %t : f16
  }} -> tensor<{M}x{N}xf16>
  return %y : tensor<{M}x{N}xf16>
}}
"""


def _inputs() -> list[Array]:
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    gamma, var = (draw.uniform(0.5, 2, N).astype(np.float16) for _ in range(2))
    return [x, w, gamma, var]


def _once(kernel: tcir.Kernel, frozen: tuple[int, ...]) -> tuple[int, int]:
    """Launches that run once, and at each call."""
    parts = split(kernel.launches, 5, frozen)
    return len(parts.once), len(parts.each)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_norms_factors_are_a_launch_that_runs_once(target: str) -> None:
    kernel = tcir.compile(TEXT, "layers", target=target)
    assert _once(kernel, (1, 2, 3)) == (1, 1)
    assert "rsqrt" not in str(kernel.launch_table.rows[-1].work)
    x, w, gamma, var = _inputs()
    wide = [each.astype(np.float64) for each in (x, w, gamma, var)]
    wanted = wide[0] @ wide[1] * (wide[2] / np.sqrt(wide[3]))
    got = np.asarray(kernel.run(x, w, gamma, var), np.float64)
    np.testing.assert_allclose(got, wanted, atol=2e-2, rtol=1e-3)


@pytest.mark.parametrize("frozen", ["", "1, 2"])
def test_an_epilogue_computes_what_may_change(frozen: str) -> None:
    text = TEXT.replace("tc.frozen = array<i64: 1, 2, 3>", f"tc.frozen = array<i64: {frozen}>")
    kernel = tcir.compile(text.replace(": >", ">"), "layers", target="sm_90a")
    assert _once(kernel, (1, 2, 3)) == (0, 1)


def test_every_pass_keeps_the_values() -> None:
    tcir.validate(TEXT, "layers", target="sm_90a").check()


def test_a_number_of_no_argument_is_rejected() -> None:
    text = TEXT.replace("i64: 1, 2, 3", "i64: 1, 4")
    with pytest.raises(tcir.PassError, match=r"tc.frozen .* 0 to 3, .*got 4"):
        tcir.compile(text, "layers", target="sm_90a")


SAME = """
#same = affine_map<(m, n) -> (m, n)>
func.func @add(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> tensor<4x8xf32>
    attributes {tc.frozen = array<i64: 1>} {
  %e = math.exp %w : tensor<4x8xf32>
  %y = arith.addf %x, %e : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
"""
MOVED = """
#rows = affine_map<(m, n) -> (m, n)>
#columns = affine_map<(m, n) -> (n)>
func.func @add(%x: tensor<4x8xf32>, %w: tensor<8xf16>) -> tensor<4x8xf32>
    attributes {tc.frozen = array<i64: 1>} {
  %e = arith.extf %w : tensor<8xf16> to tensor<8xf32>
  %o = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #rows],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %e : tensor<4x8xf32>, tensor<8xf32>) outs(%o : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [(TEXT, ["tensor<48xf32>"]), (SAME, []), (MOVED, [])],
    ids=["factors", "as many elements as their reader", "a wider copy of a weight"],
)
def test_what_is_computed_once(text: str, found: list[str]) -> None:
    with mlir_context() as context:
        module = load_module(text, context)
        (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        assert [str(each.type) for each in computed_once(function)] == found
        assert all(isinstance(each, ir.OpResult) for each in computed_once(function))
