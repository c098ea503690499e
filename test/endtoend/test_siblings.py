"""Products of one tensor with frozen matrices as one product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.program.frozen import split

Array = np.ndarray[Any, Any]
M, K, HEAD = 24, 64, 16
HEADS = (4, 2, 2)
WIDTHS = [HEAD * each for each in HEADS]
PLAIN = """  %f{n} = tensor.empty() : tensor<{w}x{k}xf16>
  %g{n} = linalg.copy ins(%w{n} : tensor<{w}x{k}xf16>) outs(%f{n} : tensor<{w}x{k}xf16>)
      -> tensor<{w}x{k}xf16>
"""
SCALED = """  %f{n} = tensor.empty() : tensor<{w}x{k}xf16>
  %g{n} = linalg.generic {{indexing_maps = [#matrix, #rows, #matrix],
      iterator_types = ["parallel", "parallel"]}}
      ins(%w{n}, %s{n} : tensor<{w}x{k}xi8>, tensor<{w}x1xf16>)
      outs(%f{n} : tensor<{w}x{k}xf16>) {{
  ^bb0(%a: i8, %b: f16, %o: f16):
    %c = arith.sitofp %a : i8 to f16
    %p = arith.mulf %c, %b : f16
    linalg.yield %p : f16
  }} -> tensor<{w}x{k}xf16>
"""
PROJECTION = """  %t{n} = tensor.empty() : tensor<{k}x{w}xf16>
  %u{n} = linalg.transpose ins(%g{n} : tensor<{w}x{k}xf16>) outs(%t{n} : tensor<{k}x{w}xf16>)
      permutation = [1, 0]
  %e{n} = tensor.empty() : tensor<{m}x{w}xf32>
  %i{n} = linalg.fill ins(%zero : f32) outs(%e{n} : tensor<{m}x{w}xf32>) -> tensor<{m}x{w}xf32>
  %p{n} = linalg.matmul ins(%x, %u{n} : tensor<{m}x{k}xf16>, tensor<{k}x{w}xf16>)
      outs(%i{n} : tensor<{m}x{w}xf32>) -> tensor<{m}x{w}xf32>
  %o{n} = tensor.empty() : tensor<{m}x{w}xf16>
  %q{n} = linalg.generic {{indexing_maps = [#matrix, #column, #matrix],
      iterator_types = ["parallel", "parallel"]}}
      ins(%p{n}, %b{n} : tensor<{m}x{w}xf32>, tensor<{w}xf16>) outs(%o{n} : tensor<{m}x{w}xf16>) {{
  ^bb0(%a: f32, %b: f16, %o: f16):
    %c = arith.extf %b : f16 to f32
    %s = arith.addf %a, %c : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  }} -> tensor<{m}x{w}xf16>
  %h{n} = tensor.expand_shape %q{n} [[0], [1, 2]] output_shape [{m}, {h}, {d}]
      : tensor<{m}x{w}xf16> into tensor<{m}x{h}x{d}xf16>
  %y{n} = math.absf %h{n} : tensor<{m}x{h}x{d}xf16>
"""


def program(weights: str, frozen: bool = True) -> str:
    """Three projections of one tensor, whose heads are read apart; their biases and the `weights`
    are frozen."""
    kind = "i8" if weights is SCALED else "f16"
    arguments, body, results = [f"%x: tensor<{M}x{K}xf16>"], "", []
    for n, (w, h) in enumerate(zip(WIDTHS, HEADS, strict=True)):
        arguments += [f"%w{n}: tensor<{w}x{K}x{kind}>", f"%b{n}: tensor<{w}xf16>"]
        arguments += [f"%s{n}: tensor<{w}x1xf16>"] if weights is SCALED else []
        body += (weights + PROJECTION).format(n=n, m=M, k=K, w=w, h=h, d=HEAD)
        results.append(f"tensor<{M}x{h}x{HEAD}xf16>")
    numbers = ", ".join(map(str, range(1, len(arguments))))
    marked = f"attributes {{tc.frozen = array<i64: {numbers}>}} " if frozen else ""
    return f"""
#matrix = affine_map<(m, n) -> (m, n)>
#rows = affine_map<(m, n) -> (m, 0)>
#column = affine_map<(m, n) -> (n)>
func.func @heads({", ".join(arguments)}) -> ({", ".join(results)}) {marked}{{
  %zero = arith.constant 0.0 : f32
{body}  return %y0, %y1, %y2 : {", ".join(results)}
}}
"""


def inputs(weights: str) -> list[Array]:
    """Arguments of `program`."""
    draw = np.random.default_rng(0)
    found = [draw.standard_normal((M, K)).astype(np.float16)]
    for w in WIDTHS:
        plain = draw.standard_normal((w, K)).astype(np.float16)
        codes = draw.integers(-100, 100, (w, K)).astype(np.int8)
        found.append(codes if weights is SCALED else plain)
        found.append(draw.standard_normal(w).astype(np.float16))
        if weights is SCALED:
            found.append(draw.uniform(0.01, 0.02, (w, 1)).astype(np.float16))
    return found


def expected(weights: str, x: Array, *rest: Array) -> list[Array]:
    """Results of `program` in f64."""
    count = len(rest) // 3
    found = []
    for n in range(3):
        matrix, bias, *scale = rest[count * n : count * (n + 1)]
        wide = matrix.astype(np.float64) * (scale[0].astype(np.float64) if scale else 1)
        sums = x.astype(np.float64) @ wide.T + bias
        found.append(np.abs(sums).reshape(M, -1, HEAD))
    return found


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("weights", [PLAIN, SCALED], ids=["f16", "int8"])
def test_projections_are_one_product(weights: str, target: str) -> None:
    kernel = tcir.compile(program(weights), "layers", target=target)
    given = inputs(weights)
    parts = split(kernel.launches, len(given) + 3, range(1, len(given)))
    products = [each.name for each in parts.each if each.name.endswith("matmul")]
    assert len(products) == 1
    assert parts.once
    assert all("concat" in each.name for each in parts.once)
    for got, wanted in zip(kernel.run(*given), expected(weights, *given), strict=True):
        np.testing.assert_allclose(np.asarray(got, np.float64), wanted, atol=3e-2, rtol=2e-3)


def test_weights_that_change_are_read_apart() -> None:
    kernel = tcir.compile(program(PLAIN, frozen=False), "layers", target="sm_90a")
    assert sum(each.name.endswith("matmul") for each in kernel.launches.launches) == 3
    assert not any("concat" in each.name for each in kernel.launches.launches)


def test_every_pass_keeps_the_values() -> None:
    report = tcir.validate(program(SCALED), "layers", target="sm_90a")
    report.check()
    (joined,) = (each for each in report.passes if each.name == "join-siblings")
    assert joined.verdict == "equal"
