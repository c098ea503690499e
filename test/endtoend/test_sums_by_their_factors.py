"""The bound of a sum follows the types of its own factors, whatever the first argument is."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.interp.types import Array
from tcir.program.source import load_module, mlir_context
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

SCALED = """
#rows = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @f(ARGUMENTS) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<16x64xTYPE>, tensor<64x16xTYPE>)
      outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
  %o = linalg.generic {indexing_maps = [#all, #rows, #all],
      iterator_types = ["parallel", "parallel"]} ins(%c, %s : tensor<16x16xf32>, tensor<16xSCALE>)
      outs(%e : tensor<16x16xf32>) {
  ^bb0(%x: f32, %y: SCALE, %_: f32):
    WIDE
    %r = arith.addf %x, %w : f32
    linalg.yield %r : f32
  } -> tensor<16x16xf32>
  return %o : tensor<16x16xf32>
}
"""
FACTORS, SCALE = "%a: tensor<16x64xTYPE>, %b: tensor<64x16xTYPE>", "%s: tensor<16xSCALE>"


def errors(first: str, second: str, kind: str, scale: str) -> Array:
    """Bounds of the elements, for random inputs in this order of arguments, per size."""
    wide = "%w = arith.extf %y : f16 to f32" if scale == "f16" else "%w = arith.addf %y, %y : f32"
    text = SCALED.replace("ARGUMENTS", f"{first}, {second}").replace("WIDE", wide)
    with mlir_context() as context:
        module = load_module(text.replace("TYPE", kind).replace("SCALE", scale), context)
        draw = begin(module, Settings(inputs="random")).main
    assert draw.bound is not None, draw.no_bound
    return draw.bound.errors[0]


@pytest.mark.parametrize(("kind", "scale"), [("f16", "f32"), ("f32", "f16")])
def test_the_order_of_arguments_decides_nothing(kind: str, scale: str) -> None:
    before = errors(SCALE, FACTORS, kind, scale)
    behind = errors(FACTORS, SCALE, kind, scale)
    # Other random numbers: sums of 64 products of numbers near 1. tf32 alone is 2^-9 of each.
    ratio = float(np.median(before) / np.median(behind))
    assert 0.5 < ratio < 2
    assert (np.median(behind) > 0.02) == (kind == "f32")
