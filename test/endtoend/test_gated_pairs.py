"""``act(x Wg) * (x Wu)`` of two matrices, without kernels that make an element of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir

from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import BlockScaled
from .oracle import integers
from .product_text import program

Array = np.ndarray[Any, Any]
RELU = "%low = arith.constant 0.0 : f32\n    %act = arith.maximumf %s, %low : f32"
BY_ROWS = BlockScaled(m=40, k=256)
M, N, K = 40, 48, 64


def gated(layer: str, given: list[str], out: str, activation: str) -> str:
    """`layer` is a program of one product; `given`: the types of weights, then of the vector or
    matrix that both multiply; `out`: of its f32 sums."""
    half = len(given) // 2
    names = [f"{side}{n}" for side in "gu" for n in range(half)]
    names += [f"x{n}" for n in range(half)]
    types = [*given[:half], *given]
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in zip(names, types, strict=True))
    rank = out.count("x")
    loops = ", ".join(f"d{n}" for n in range(rank))
    same = f"affine_map<({loops}) -> ({loops})>"
    calls = ""
    for side in "gu":
        operands = ", ".join(f"%{name}" for name in names if name[0] in (side, "x"))
        calls += (
            f"  %{side} = func.call @f({operands}, %init) : ({', '.join(given)}, {out}) -> {out}\n"
        )
    return f"""{layer.replace("func.func @f", "func.func private @f")}
func.func @gated({arguments}) -> {out} {{
  %init = tensor.empty() : {out}
{calls}  %y = linalg.generic {{indexing_maps = [{same}, {same}, {same}],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}}
      ins(%g, %u : {out}, {out}) outs(%init : {out}) {{
  ^bb0(%s: f32, %t: f32, %o: f32):
    {activation}
    %p = arith.mulf %act, %t : f32
    linalg.yield %p : f32
  }} -> {out}
  return %y : {out}
}}
"""


def of_gemv(activation: str) -> str:
    types = [each[1] for each in BY_ROWS.operands()]
    return gated(BY_ROWS.linalg(), types, f"tensor<{BY_ROWS.m}xf32>", activation)


def of_product(activation: str) -> str:
    """Weights first: ``(x Wᵀ)`` by rows of W."""
    types = [f"tensor<{M}x{K}xf16>", f"tensor<{K}x{N}xf16>"]
    text = program(M, N, K, "f16").replace("@product", "@f")
    return gated(text, types, f"tensor<{M}x{N}xf32>", activation)


def test_a_product_beside_numpy() -> None:
    kernel = tcir.compile(of_product(RELU), "matmul-warp")
    gate, up = (integers((M, K), "f16", seed) for seed in (1, 2))
    x, out = integers((K, N), "f16", 3), np.zeros((M, N), np.float32)
    kernel(gate, up, x, out)
    g, u = (each.astype(float) @ x.astype(float) for each in (gate, up))
    assert (out == (np.maximum(g, 0) * u).astype(np.float32)).all() and out.any()
    assert [each.title for each in kernel.launches.launches] == ["gated_0_matmul", "gated_1_matmul"]
    assert kernel.launch_table.total[1:] == (out.nbytes, out.nbytes, out.nbytes)


@pytest.mark.parametrize("pipeline", ["gemv-simt", "gemv-padded-n"])
def test_a_gemv_beside_numpy(pipeline: str) -> None:
    kernel = tcir.compile(of_gemv(RELU), pipeline)
    gate, up = (inputs_of(BY_ROWS, seed=seed) for seed in (1, 2))
    x, out = {name: gate[name] for name in ("b", "sb")}, np.zeros(BY_ROWS.m, np.float32)
    kernel(gate["a"], gate["sa"], up["a"], up["sa"], *x.values(), out)
    g, u = (product(BY_ROWS, **(each | x)).astype(np.float64) for each in (gate, up))
    assert (out == (np.maximum(g, 0) * u).astype(np.float32)).all() and out.any()


@pytest.mark.parametrize("pipeline", ["matmul-warp", "gemv-simt", "gemv-padded-n"])
def test_at_every_level(pipeline: str) -> None:
    text = of_product(RELU) if pipeline == "matmul-warp" else of_gemv(RELU)
    report = tcir.validate(text, pipeline)
    assert report.ok, str(report)
