"""Transposes and broadcasts beside and in front of products, behind fold-layouts, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp.tensor import run
from tcir.passes.module.fold_layouts import FoldLayouts

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Move:
    """A generic op that yields one element of a tensor, at these indices of the result's."""

    name: str
    shape: tuple[int, ...]
    index: str
    result: tuple[int, ...]
    expected: Callable[[Array], Array]

    def op(self, source: str, element: str = "f32") -> str:
        loops = ", ".join(f"d{n}" for n in range(len(self.result)))
        kinds = [f"tensor<{'x'.join(map(str, s))}x{element}>" for s in (self.shape, self.result)]
        parallel = ", ".join(['"parallel"'] * len(self.result))
        return f"""%me = tensor.empty() : {kinds[1]}
  %m = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({self.index})>,
      affine_map<({loops}) -> ({loops})>], iterator_types = [{parallel}]}}
      ins({source} : {kinds[0]}) outs(%me : {kinds[1]}) {{
  ^bb0(%i: {element}, %o: {element}):
    linalg.yield %i : {element}
  }} -> {kinds[1]}"""

    def beside(self) -> str:
        """In a function with a product of its own."""
        source, result = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (self.shape, self.result))
        return f"""
func.func @f(%a: tensor<16x32xf16>, %b: tensor<16x32xf16>, %s: {source})
    -> (tensor<16x16xf32>, {result}) {{
  {self.op("%s")}
  %te = tensor.empty() : tensor<32x16xf16>
  %t = linalg.transpose ins(%b : tensor<16x32xf16>) outs(%te : tensor<32x16xf16>)
    permutation = [1, 0]
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %y = linalg.matmul ins(%a, %t : tensor<16x32xf16>, tensor<32x16xf16>)
    outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y, %m : tensor<16x16xf32>, {result}
}}"""


MOVES = [
    Move("repeated in columns", (4,), "d0", (4, 3), lambda s: np.repeat(s[:, None], 3, 1)),
    Move("repeated as a square", (4,), "d0", (4, 4), lambda s: np.repeat(s[:, None], 4, 1)),
    Move("repeated in rows", (4,), "d1", (3, 4), lambda s: np.repeat(s[None], 3, 0)),
    Move("matrices repeated", (2, 3), "d0, d1", (2, 3, 2), lambda s: np.repeat(s[..., None], 2, 2)),
    Move("a dimension of one index", (4,), "d0", (4, 1), lambda s: s[:, None]),
    Move("transposed", (4, 3), "d1, d0", (3, 4), lambda s: s.T),
    Move("transposed column", (4, 1), "d1, d0", (1, 4), lambda s: s.T),
    Move("diagonal repeated", (4, 4), "d0, d0", (4, 4), lambda s: np.diag(s)[:, None] + 0 * s),
    Move("first repeated", (4, 1), "0, 0", (4, 1), lambda s: np.repeat(s[:1], 4, 0)),
]


def folded(text: str, inputs: list[Array], outputs: list[OutputSpec]) -> tuple[str, list[Array]]:
    """The module behind fold-layouts, and its results."""
    with ir.Context() as context:
        tc.load(context)
        module = ir.Module.parse(text)
        with ir.Location.unknown():
            FoldLayouts().run(module)
        assert module.operation.verify()
        return str(module), run(module, "f", inputs, outputs).outputs


@pytest.mark.parametrize("move", MOVES, ids=lambda m: m.name)
def test_beside_a_product(move: Move) -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(-3, 4, (2, 16, 32)).astype(np.float16)
    s = draw.standard_normal(move.shape).astype(np.float32)
    f4 = np.dtype(np.float32)
    text, (y, m) = folded(
        move.beside(), [a, b, s], [OutputSpec((16, 16), f4), OutputSpec(move.result, f4)]
    )
    assert "linalg.transpose" not in text or move.name == "transposed"
    np.testing.assert_array_equal(y, a.astype(float) @ b.astype(float).T)
    np.testing.assert_array_equal(m, move.expected(s))


@pytest.mark.parametrize("move", MOVES[:5], ids=lambda m: m.name)
def test_every_level(move: Move) -> None:
    report = tcir.validate(move.beside(), "layers", strict=True)
    assert report.verdict == "held", report


CONV = """
func.func @f(%s: tensor<1x6x6xf16>, %w: tensor<16x3x3x16xf16>) -> tensor<1x6x6x16xf32> {{
  {move}
  %n = arith.constant 0.0 : f16
  %p = tensor.pad %m low[0, 1, 1, 0] high[0, 1, 1, 0] {{
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %n : f16
  }} : tensor<1x6x6x16xf16> to tensor<1x8x8x16xf16>
  %z = arith.constant dense<0.0> : tensor<1x6x6x16xf32>
  %y = linalg.conv_2d_nhwc_fhwc ins(%p, %w : tensor<1x8x8x16xf16>, tensor<16x3x3x16xf16>)
    outs(%z : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  return %y : tensor<1x6x6x16xf32>
}}"""


def test_padded_in_front_of_a_convolution() -> None:
    """Of what is repeated the padding stays behind the repetition."""
    move = Move("channels", (1, 6, 6), "d0, d1, d2", (1, 6, 6, 16), lambda s: s)
    draw = np.random.default_rng(0)
    s, w = (draw.integers(-3, 4, n).astype(np.float16) for n in ((1, 6, 6), (16, 3, 3, 16)))
    text = CONV.format(move=move.op("%s", "f16"))
    _, (y,) = folded(text, [s, w], [OutputSpec((1, 6, 6, 16), np.dtype(np.float32))])
    padded = np.pad(s.astype(float), [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    np.testing.assert_array_equal(y, np.einsum("npqrs,krsc->npqk", windows, w.astype(float)))
    assert tcir.validate(text, "layers", strict=True).verdict == "held"
