"""Gate and value of a SwiGLU as one product, whose epilogue reads both sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.pipelining.overlap_products import OverlapProducts
from tcir.pipelines.parts.back import WARPGROUPS, tile_to_llvm
from tcir.program.frozen import split

Array = np.ndarray[Any, Any]
K = 64
SWIGLU = """
#same = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
func.func @swiglu(%x: tensor<{m}x{k}xf16>, %wg: tensor<{n}x{k}xf16>, %wu: tensor<{n}x{k}xf16>,
                  %b: tensor<{n}xf16>{arguments}) -> ({results}) {marked} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %t = tensor.empty() : tensor<{k}x{n}xf16>
  %gt = linalg.transpose ins(%wg : tensor<{n}x{k}xf16>) outs(%t : tensor<{k}x{n}xf16>)
      permutation = [1, 0]
  %ut = linalg.transpose ins(%wu : tensor<{n}x{k}xf16>) outs(%t : tensor<{k}x{n}xf16>)
      permutation = [1, 0]
  %g = linalg.matmul ins(%x, %gt : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>)
      outs(%i : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %u = linalg.matmul ins({other}, %ut : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>)
      outs(%i : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %h = tensor.empty() : tensor<{m}x{n}xf16>
  %v = linalg.generic {{indexing_maps = [#same, #column, #same],
      iterator_types = ["parallel", "parallel"]}}
      ins(%u, %b : tensor<{m}x{n}xf32>, tensor<{n}xf16>) outs(%h : tensor<{m}x{n}xf16>) {{
  ^bb0(%a: f32, %c: f16, %o: f16):
    %r = arith.truncf %a : f32 to f16
    %s = arith.addf %r, %c : f16
    linalg.yield %s : f16
  }} -> tensor<{m}x{n}xf16>
  %y = linalg.generic {{indexing_maps = [#same, #same, #same],
      iterator_types = ["parallel", "parallel"]}}
      ins(%g, %v : tensor<{m}x{n}xf32>, tensor<{m}x{n}xf16>) outs(%h : tensor<{m}x{n}xf16>) {{
  ^bb0(%a: f32, %c: f16, %o: f16):
    %neg = arith.negf %a : f32
    %exp = math.exp %neg : f32
    %sum = arith.addf %exp, %one : f32
    %silu = arith.divf %a, %sum : f32
    %r = arith.truncf %silu : f32 to f16
    %s = arith.mulf %r, %c : f16
    linalg.yield %s : f16
  }} -> tensor<{m}x{n}xf16>
  return %y{returned} : {results}
}}
"""


def program(m: int, n: int, frozen: str = "1, 2, 3", **options: str) -> str:
    """silu(x Wg^T) * (x Wu^T + b) with frozen arguments, or as the options say."""
    words = {"arguments": "", "results": "{out}", "returned": "", "other": "%x", **options}
    sizes = {"m": m, "n": n, "k": K, "out": f"tensor<{m}x{n}xf16>"}
    marked = f"attributes {{tc.frozen = array<i64: {frozen}>}}" if frozen else ""
    words = {name: each.format(**sizes) for name, each in words.items()}
    return SWIGLU.format(marked=marked, **sizes, **words)


def inputs(m: int, n: int) -> list[Array]:
    draw = np.random.default_rng(0)
    shapes = (m, K), (n, K), (n, K), (n,)
    return [draw.standard_normal(shape).astype(np.float16) for shape in shapes]


def expected(x: Array, gate: Array, value: Array, bias: Array) -> Array:
    """Results of `program` in f64."""
    wide, g, u, b = (each.astype(np.float64) for each in (x, gate, value, bias))
    sums = wide @ g.T
    return np.asarray(sums / (1 + np.exp(-sums)) * (wide @ u.T + b))


def products(kernel: tcir.Kernel) -> list[str]:
    """Names of the launches of each call that multiply."""
    parts = split(kernel.launches, 5, range(1, 4))
    return [each.name for each in parts.each if each.name.endswith("matmul")]


@pytest.mark.parametrize(
    ("target", "m", "n"),
    [("sm_90a", 72, 40), ("sm_90a", 5, 48), ("sm_100a", 130, 24)],
    ids=["warpgroups", "few rows", "tcgen05"],
)
def test_gate_and_value_are_one_product(target: str, m: int, n: int) -> None:
    given = inputs(m, n)
    joined = tcir.compile(program(m, n), "layers", target=target)
    apart = tcir.compile(program(m, n, frozen=""), "layers", target=target)
    assert (len(products(joined)), len(products(apart))) == (1, 2)
    assert len(split(joined.launches, 5, range(1, 4)).once) == 1
    got, wanted = joined.run(*given), apart.run(*given)
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))
    np.testing.assert_allclose(got.astype(np.float64), expected(*given), atol=0.1, rtol=5e-3)


@pytest.mark.parametrize(
    ("target", "m", "n", "options"),
    [
        ("sm_90a", 72, 40, {"frozen": "1, 3"}),
        ("sm_90a", 72, 40, {"returned": ", %v", "results": "{out}, {out}"}),
        ("sm_90a", 72, 40, {"arguments": ", %z: tensor<{m}x{k}xf16>", "other": "%z"}),
        ("sm_90a", 72, 36, {}),
        ("sm_100a", 100, 40, {}),
    ],
    ids=["a weight changes", "value returned", "other tensor", "36 columns", "few rows"],
)
def test_products_that_stay_apart(target: str, m: int, n: int, options: dict[str, str]) -> None:
    kernel = tcir.compile(program(m, n, **options), "layers", target=target)
    names = [each.name for each in kernel.launches.launches if each.name.endswith("matmul")]
    assert len(names) == 2


def test_weights_in_the_program_alternate_when_it_is_compiled() -> None:
    m, n = 72, 24
    _, gate, value, bias = inputs(m, n)
    text = program(m, n, frozen="")
    for name, each in (("wg", gate), ("wu", value)):
        text = text.replace(f", %{name}: tensor<{n}x{K}xf16>", "").replace(
            f"%{name}: tensor<{n}x{K}xf16>,", ""
        )
        words = ", ".join("[" + ", ".join(f"{x:e}" for x in row) + "]" for row in each)
        constant = f"  %{name} = arith.constant dense<[{words}]> : tensor<{n}x{K}xf16>\n"
        text = text.replace("  %zero", constant + "  %zero", 1)
    kernel = tcir.compile(text, "layers", target="sm_90a")
    assert [each.name for each in kernel.launches.launches] == ["swiglu_1_matmul"]
    given = inputs(m, n)
    got = kernel.run(given[0], bias)
    np.testing.assert_allclose(got.astype(np.float64), expected(*given), atol=0.1, rtol=5e-3)


@pytest.mark.parametrize(
    ("target", "m", "n"), [("sm_90a", 72, 24), ("sm_90a", 5, 16), ("sm_100a", 130, 8)]
)
def test_every_pass_keeps_the_values(target: str, m: int, n: int) -> None:
    report = tcir.validate(program(m, n), "layers", target=target)
    report.check()
    assert report["join-gates"].verdict == "equal"


BLOCKS = """
#all = affine_map<(m, n) -> (m, n)>
func.func @f(%a: tensor<300x128xf16>, %b: tensor<96x128xf16>, %r: tensor<300x48xf16>)
    -> tensor<300x48xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"}
      : (tensor<300x128xf16>, tensor<96x128xf16>) -> tensor<300x96xf32>
  %g = "tc.epilogue"(%c) ({
  ^bb0(%s: f32, %t: f32):
    %e = "tc.element"(%r) {map = #all} : (tensor<300x48xf16>) -> f16
    %m = arith.mulf %s, %t : f32
    %n = arith.truncf %m : f32 to f16
    %o = arith.addf %n, %e : f16
    "tc.yield"(%o) : (f16) -> ()
  }) {gate_block = 8 : i64} : (tensor<300x96xf32>) -> tensor<300x48xf16>
  return %g : tensor<300x48xf16>
}
"""


def of_blocks(a: Array, b: Array, r: Array) -> Array:
    """Results of `BLOCKS` of integers."""
    sums = (a.astype(np.float64) @ b.astype(np.float64).T).reshape(len(a), -1, 2, 8)
    product = (sums[:, :, 0] * sums[:, :, 1]).reshape(len(a), -1).astype(np.float32)
    return np.asarray(product.astype(np.float16) + r)


@pytest.mark.parametrize(
    "options", [{}, {"persistent": True, "ctas": 2, "n_tile": 96}, {"n_tile": 32}]
)
def test_blocks_of_gates(options: dict[str, Any]) -> None:
    draw = np.random.default_rng(0)
    given = [
        draw.integers(-2, 3, shape).astype(np.float16)
        for shape in ((300, 128), (96, 128), (300, 48))
    ]
    back = tile_to_llvm(0, warpgroups=(*WARPGROUPS, OverlapProducts()))
    kernel = tcir.compile(BLOCKS, [TileGemm(**options), *back], target="sm_90a")
    got = kernel.run(*given)
    np.testing.assert_array_equal(got, of_blocks(*given))


def test_a_tile_that_cuts_a_block_is_rejected() -> None:
    with pytest.raises(tcir.PassError, match="n-tile to be a multiple of 16 with a gated result"):
        tcir.compile(BLOCKS, [TileGemm(n_tile=24)], target="sm_90a")
