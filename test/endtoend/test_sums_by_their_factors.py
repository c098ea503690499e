"""The bound of a sum follows the types of its own factors, whatever the first argument is."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.dialect.walk import walk
from tcir.interp.types import Array
from tcir.program.access import product_of
from tcir.program.factors import factor_types
from tcir.program.source import load_module, mlir_context
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from .block_scaled_text import F4, F8A, UE4M3, UE8M0, BlockScaled

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


def test_factors_that_are_powers_of_two_have_a_bound() -> None:
    """f8E8M0FNU is a factor here, not a scale."""
    text = """func.func @f(%a: tensor<16x32xf8E8M0FNU>, %b: tensor<32x16xf8E8M0FNU>)
        -> tensor<16x16xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16x16xf32>
      %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
      %c = linalg.matmul ins(%a, %b : tensor<16x32xf8E8M0FNU>, tensor<32x16xf8E8M0FNU>)
          outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
      return %c : tensor<16x16xf32>
    }"""
    with mlir_context() as context:
        draw = begin(load_module(text, context), Settings(inputs="random")).main
    assert draw.bound is not None, draw.no_bound


@pytest.mark.parametrize(
    ("case", "types"),
    [
        (BlockScaled(a=F8A, b=F4, scale=UE8M0, block=32), {"float8_e4m3fn", "float4_e2m1fn"}),
        (BlockScaled(a=F4, b=F4, scale=UE4M3), {"float4_e2m1fn"}),
        (BlockScaled(a=F4, b=F4, scale=UE8M0, block=32), {"float4_e2m1fn"}),
    ],
    ids=lambda each: "+".join(sorted(each)) if isinstance(each, set) else str(each),
)
def test_scales_are_no_factors(case: BlockScaled, types: set[str]) -> None:
    """f8E4M3FN beside f4E2M1FN is a factor where the scales are f8E8M0FNU."""
    with mlir_context() as context:
        module = load_module(case.op(), context)
        products = (product_of(op.operation) for op in walk(module.operation))
        (product,) = (each for each in products if each is not None)
        assert {each.name for each in factor_types(product)} == types
