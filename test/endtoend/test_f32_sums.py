"""f32 products that are no matrix product, and those that the user wants in f32, have the digits of
f32; a matrix product has those of tf32, and a remark says so."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.passmanager.remarks import remarks_to

F32 = 2.0**-20
"""Of the magnitudes: a few roundings of f32."""
TF32 = 2.0**-13
"""The smallest error that an input cut to tf32 shows."""
ROWS, ROW = "(m, k) -> (m, k)", "(m, k) -> (k)"

SUMMED = """
func.func @f(%a: tensor<8x48xf32>, %b: tensor<{b}xf32>) -> tensor<8xf32> {{
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<8x48xf32>
  %p = linalg.generic {{indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<{map}>,
      affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %{second} : tensor<8x48xf32>, tensor<{b}xf32>) outs(%e : tensor<8x48xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    linalg.yield %m : f32
  }} -> tensor<8x48xf32>
  %s = linalg.generic {{indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%p : tensor<8x48xf32>) outs(%zero : tensor<8xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %x, %o : f32
    linalg.yield %t : f32
  }} -> tensor<8xf32>
  return %s : tensor<8xf32>
}}"""
"""(a * b).sum(-1), as importers write it."""
CONTRACTED = """
func.func @f(%a: tensor<8x48xf32>, %b: tensor<{b}xf32>) -> tensor<{out}xf32> {{
  %zero = arith.constant dense<0.0> : tensor<{out}xf32>
  %s = linalg.generic {{indexing_maps = [affine_map<({loops}) -> (m, k)>,
      affine_map<({loops}) -> ({b_dims})>, affine_map<({loops}) -> ({out_dims})>],
      iterator_types = [{parallel}, "reduction"]}}
      ins(%a, %b : tensor<8x48xf32>, tensor<{b}xf32>) outs(%zero : tensor<{out}xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }} -> tensor<{out}xf32>
  return %s : tensor<{out}xf32>
}}"""

TWO = SUMMED.format(b="8x48", map=ROWS, second="b")
SAME = SUMMED.format(b="8x48", map=ROWS, second="a")
BROADCAST = SUMMED.format(b="48", map=ROW, second="b")
DOT = CONTRACTED.format(
    b="8x48", out="8", loops="m, k", b_dims="m, k", out_dims="m", parallel='"parallel"'
)
MATMUL = CONTRACTED.format(
    b="24x48",
    out="8x24",
    loops="m, n, k",
    b_dims="n, k",
    out_dims="m, n",
    parallel='"parallel", "parallel"',
)


def error(text: str, pipeline: str, einsum: str) -> float:
    """The largest error against f64, of the sums of magnitudes."""
    generator = np.random.default_rng(0)
    kernel = tcir.compile(text, pipeline)
    a, b = (generator.standard_normal(s.shape).astype(np.float32) for s in kernel.signature.inputs)
    second = a if "%a, %a" in text else b
    result = kernel.run(a, b)
    wide = (a.astype(np.float64), second.astype(np.float64))
    exact, size = np.einsum(einsum, *wide), np.einsum(einsum, *map(np.abs, wide))
    return float((np.abs(result - exact) / size).max())


@pytest.mark.parametrize("pipeline", ["layers", "gemm", "matmul-warp"])
@pytest.mark.parametrize(
    ("text", "einsum"),
    [(TWO, "mk,mk->m"), (SAME, "mk,mk->m"), (BROADCAST, "mk,k->m"), (DOT, "mk,mk->m")],
    ids=["two", "same", "broadcast", "dot"],
)
def test_no_matrix_product(text: str, einsum: str, pipeline: str) -> None:
    assert error(text, pipeline, einsum) < F32


@pytest.mark.parametrize("pipeline", ["layers", "gemm", "matmul-warp"])
def test_the_user_s_choice(pipeline: str) -> None:
    assert error(MATMUL, pipeline, "mk,nk->mn") > TF32
    assert error(MATMUL, pipeline + "{tf32=false}", "mk,nk->mn") < F32


def test_a_remark_says_tf32() -> None:
    said: list[str] = []
    with remarks_to(lambda location, text: said.append(text)):
        tcir.compile(MATMUL, "gemm")
    assert any("multiplied as tf32" in each for each in said)
    said.clear()
    with remarks_to(lambda location, text: said.append(text)):
        tcir.compile(TWO, "gemm")
    assert said and not any("tf32" in each for each in said)
