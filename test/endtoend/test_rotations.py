"""Rotations of an attention's queries and keys as one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.program.frozen import split

Array = np.ndarray[Any, Any]
M, K, D = 24, 64, 64
PROJECTION = """
  %t{n} = tensor.empty() : tensor<{k}x{w}xf16>
  %u{n} = linalg.transpose ins(%w{n} : tensor<{w}x{k}xf16>) outs(%t{n} : tensor<{k}x{w}xf16>)
      permutation = [1, 0]
  %e{n} = tensor.empty() : tensor<{m}x{w}xf32>
  %i{n} = linalg.fill ins(%zero : f32) outs(%e{n} : tensor<{m}x{w}xf32>) -> tensor<{m}x{w}xf32>
  %p{n} = linalg.matmul ins(%x, %u{n} : tensor<{m}x{k}xf16>, tensor<{k}x{w}xf16>)
      outs(%i{n} : tensor<{m}x{w}xf32>) -> tensor<{m}x{w}xf32>
  %o{n} = tensor.empty() : tensor<{m}x{w}xf16>
  %r{n} = arith.truncf %p{n} : tensor<{m}x{w}xf32> to tensor<{m}x{w}xf16>
  %h{n} = tensor.expand_shape %r{n} [[0, 1], [2, 3]] output_shape [1, {m}, {h}, {d}]
      : tensor<{m}x{w}xf16> into tensor<1x{m}x{h}x{d}xf16>
  %b{n} = tensor.empty() : tensor<1x{h}x{m}x{d}xf16>
  %a{n} = linalg.transpose ins(%h{n} : tensor<1x{m}x{h}x{d}xf16>)
      outs(%b{n} : tensor<1x{h}x{m}x{d}xf16>) permutation = [0, 2, 1, 3]
"""
ROTATION = """
  %c{n} = linalg.generic {{indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%a{n}, %cos : tensor<1x{h}x{m}x{d}xf16>, tensor<1x1x{m}x{d}xf16>)
      outs(%b{n} : tensor<1x{h}x{m}x{d}xf16>) {{
  ^bb0(%s: f16, %v: f16, %o: f16):
    %y = arith.mulf %s, %v : f16
    linalg.yield %y : f16
  }} -> tensor<1x{h}x{m}x{d}xf16>
  %low{n} = tensor.extract_slice %a{n}[0, 0, 0, 0] [1, {h}, {m}, {half}] [1, 1, 1, 1]
      : tensor<1x{h}x{m}x{d}xf16> to tensor<1x{h}x{m}x{half}xf16>
  %high{n} = tensor.extract_slice %a{n}[0, 0, 0, {half}] [1, {h}, {m}, {half}] [1, 1, 1, 1]
      : tensor<1x{h}x{m}x{d}xf16> to tensor<1x{h}x{m}x{half}xf16>
  %neg{n} = arith.negf %high{n} : tensor<1x{h}x{m}x{half}xf16>
  %turned{n} = tensor.concat dim(3) %neg{n}, %low{n}
      : (tensor<1x{h}x{m}x{half}xf16>, tensor<1x{h}x{m}x{half}xf16>) -> tensor<1x{h}x{m}x{d}xf16>
  %f{n} = linalg.generic {{indexing_maps = [#all, #row, #all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%turned{n}, %{sin}, %c{n} : tensor<1x{h}x{m}x{d}xf16>, tensor<1x1x{m}x{d}xf16>,
          tensor<1x{h}x{m}x{d}xf16>) outs(%b{n} : tensor<1x{h}x{m}x{d}xf16>) {{
  ^bb0(%s: f16, %v: f16, %t: f16, %o: f16):
    %y = arith.mulf %s, %v : f16
    %z = arith.addf %t, %y : f16
    linalg.yield %z : f16
  }} -> tensor<1x{h}x{m}x{d}xf16>
"""


def program(heads: tuple[int, int] = (4, 2), sin: str = "sin", frozen: str = "1, 2, 3") -> str:
    """Attention of rotated queries and keys, whose projections and values are of one tensor; sin:
    the sines of the keys."""
    queries, keys = heads
    counts = (queries, keys, keys)
    weights = ", ".join(f"%w{n}: tensor<{h * D}x{K}xf16>" for n, h in enumerate(counts))
    table = f"tensor<1x1x{M}x{D}xf16>"
    body = ""
    for n, h in enumerate(counts):
        words = {"n": n, "m": M, "k": K, "d": D, "h": h, "w": h * D, "half": D // 2}
        body += PROJECTION.format(**words)
        body += ROTATION.format(sin=sin if n else "sin", **words) if n < 2 else ""
    kinds = [f"tensor<1x{h}x{M}x{D}xf16>" for h in counts]
    out = f"tensor<1x{M}x{queries}x{D}xf16>"
    marked = f"attributes {{tc.frozen = array<i64: {frozen}>}}" if frozen else ""
    return f"""
#all = affine_map<(b, h, m, d) -> (b, h, m, d)>
#row = affine_map<(b, h, m, d) -> (b, 0, m, d)>
func.func @rotated(%x: tensor<{M}x{K}xf16>, {weights}, %cos: {table}, %sin: {table},
                   %other: {table}) -> {out} {marked} {{
  %zero = arith.constant 0.0 : f32{body}
  %y:2 = "tc.attention"(%f0, %f1, %a2) ({{
  }}) {{q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bmhd", scale = 0.125 : f32}}
      : ({", ".join(kinds)}) -> ({out}, tensor<1x{queries}x{M}xf32>)
  return %y#0 : {out}
}}
"""


def inputs(heads: tuple[int, int] = (4, 2)) -> list[Array]:
    draw = np.random.default_rng(0)
    counts = (heads[0], heads[1], heads[1])
    found = [draw.standard_normal((M, K)), *(draw.standard_normal((h * D, K)) / 8 for h in counts)]
    angle = np.concatenate([draw.uniform(0, 6, (M, D // 2))] * 2, axis=1)
    found += [np.cos(angle)[None, None], np.sin(angle)[None, None], np.sin(angle + 1)[None, None]]
    return [each.astype(np.float16) for each in found]


def expected(x: Array, wq: Array, wk: Array, wv: Array, cos: Array, sin: Array, _: Array) -> Array:
    """Results of `program` in f64."""
    wide = [each.astype(np.float64) for each in (x, wq, wk, wv, cos, sin)]
    x, *weights, cos, sin = wide
    q, k, v = ((x @ w.T).reshape(M, -1, D).transpose(1, 0, 2) for w in weights)

    def turned(a: Array) -> Array:
        return np.asarray(
            a * cos[0] + np.concatenate([-a[..., D // 2 :], a[..., : D // 2]], -1) * sin[0]
        )

    group = len(q) // len(k)
    q, k, v = turned(q), np.repeat(turned(k), group, 0), np.repeat(v, group, 0)
    scores = np.exp(q @ k.transpose(0, 2, 1) / 8)
    return np.asarray((scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2)[None])


def rotations(text: str) -> int:
    """Launches of each call that are neither products nor attention."""
    kernel = tcir.compile(text, "layers", target="sm_90a")
    parts = split(kernel.launches, 8, range(1, 4))
    return sum(not each.name.endswith(("matmul", "attention")) for each in parts.each)


@pytest.mark.parametrize("heads", [(4, 2), (2, 2)], ids=["groups", "equal heads"])
def test_queries_and_keys_are_rotated_together(heads: tuple[int, int]) -> None:
    given = inputs(heads)
    kernel = tcir.compile(program(heads), "layers", target="sm_90a")
    assert rotations(program(heads)) == 1
    got = kernel.run(*given)
    np.testing.assert_allclose(got.astype(np.float64), expected(*given), atol=2e-2, rtol=1e-2)


@pytest.mark.parametrize(
    "options", [{"sin": "other"}, {"frozen": ""}], ids=["other angles", "weights that change"]
)
def test_rotations_that_stay_apart(options: dict[str, str]) -> None:
    assert rotations(program(**options)) > 1  # type: ignore[arg-type]


def test_joining_keeps_the_values() -> None:
    passes = "builtin.module(fold-empty,constants-to-arguments,join-siblings,fold-layouts)"
    report = tcir.validate(program(), passes, target="sm_90a")
    report.check()
    assert report["join-siblings"].verdict == "equal"
