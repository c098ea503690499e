"""Exact inputs of programs of several contractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.program.chain_inputs import WIDE
from tcir.program.chains import Chain, chain_of
from tcir.program.inputs import make_inputs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.program.special import Special
from tcir.validation.draws import Draws
from tcir.validation.propagation import Known, is_exact
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from .breaking import change_text
from .chain_text import GATED, TWO_LAYERS

Array = np.ndarray[Any, Any]


def _drawn(
    text: str, seed: int = 0, wide: tuple[int, int] | None = None
) -> tuple[list[Array], Chain | None]:
    """wide: the number of the contraction and the side of what has all bits."""
    specials = [Special(wide[1], WIDE, None, wide[0])] if wide else None
    with mlir_context() as context:
        module = load_module(text, context)
        signature = signature_of(module)
        chain = chain_of(module, signature)
        return make_inputs(signature.inputs, seed, "integers", chain, specials=specials), chain


def _draws(text: str) -> Draws:
    with mlir_context() as context:
        module = load_module(text, context)
        return Draws.of(module, signature_of(module), Settings())


def _check_sums(terms: Array, exact: Array) -> None:
    """Sums over the middle dimension are the same in any order, and nearly all finite."""
    generator = np.random.default_rng(0)
    assert np.isfinite(exact).mean() > 0.5
    for _ in range(3):
        ordered = generator.permutation(terms, axis=1).astype(np.float32)
        with np.errstate(invalid="ignore"):
            sums = np.cumsum(ordered, axis=1, dtype=np.float32)[:, -1]
        assert np.array_equal(sums, exact, equal_nan=True)


def _product(a: Array, b: Array, start: Array | None = None) -> Array:
    """The exact product, if it is the same in any order of its f32 sums."""
    with np.errstate(invalid="ignore"):
        terms = a.astype(np.float64)[:, :, None] * b.astype(np.float64)
        if start is not None:
            terms = np.concatenate([start[:, None, :].astype(np.float64), terms], axis=1)
        exact = terms.sum(axis=1)
    _check_sums(terms, exact)
    return exact


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_two_layers_are_exact_in_any_order(seed: int) -> None:
    (a, b, bias, c, start, residual), chain = _drawn(TWO_LAYERS, seed)
    assert chain is not None and len(chain.contractions) == 2
    first = _product(a, b)
    biased = first + bias
    assert (biased == biased.astype(np.float32)).all() and bias.any()
    hidden = np.maximum(biased, 0).astype(ml_dtypes.bfloat16)
    assert (hidden != np.maximum(biased, 0)).any(), "the rounding between the layers shows"
    _product(hidden, c, start)
    for array in (a, b):
        magnitudes = np.abs(array[array != 0].astype(np.float64))
        assert np.log2(magnitudes.max() / magnitudes.min()) > 20
    for array in (c, start, residual):
        assert np.isnan(array.astype(np.float32)).any() and np.isinf(array.astype(np.float32)).any()


def _bits(array: Array) -> int:
    """Of the longest significand."""
    mantissa = np.frexp(array[np.isfinite(array) & (array != 0)].astype(np.float64))[0]
    whole = (np.abs(mantissa) * 2.0**24).astype(np.int64)
    return int(24 - np.log2((whole & -whole).min()))


@pytest.mark.parametrize("wide", [(0, 0), (0, 1), (1, 1)])
def test_one_factor_after_the_other_has_all_bits(wide: tuple[int, int]) -> None:
    (a, b, bias, c, start, _), chain = _drawn(TWO_LAYERS, 0, wide)
    assert chain is not None and chain.share == 3
    place = wide[0] + wide[1]
    assert [_bits(each) for each in (a, b, c)] == [8 if n == place else 1 for n in range(3)]
    hidden = np.maximum(_product(a, b) + bias, 0).astype(ml_dtypes.bfloat16)
    _product(hidden, c, start)


@pytest.mark.parametrize("seed", range(4))
def test_products_with_the_same_operand_are_exact_in_any_order(seed: int) -> None:
    (a, gate, up), chain = _drawn(GATED, seed)
    assert chain is not None and chain.share >= 8
    for weights in (gate, up):
        _product(a, weights)
        assert np.isnan(weights).any() and np.isinf(weights).any()
    assert np.isnan(a).any() and np.isinf(a).any()


def test_special_values_of_a_first_layer_come_alone() -> None:
    draws = _draws(TWO_LAYERS)
    wide = ["all bits in A", "all bits in B", "all bits in B of contraction 2"]
    alone = ["inf in A", "NaN in A", "inf in B", "NaN in B"]
    assert [draw.words for draw in draws.more] == [
        wide[0], *alone[:2], wide[1], *alone[2:], wide[2], "ties and limits"
    ]  # fmt: skip
    for draw in draws.more:
        if draw.words not in alone:
            continue
        arrays = [array.astype(np.float64) for array in draw.inputs]
        side = "AB".index(draw.words[-1])
        assert np.isfinite(arrays[1 - side]).all() and not np.isfinite(arrays[side]).all()
        assert np.isnan(arrays[side]).any() == ("NaN" in draw.words)
    assert draws.main.words.startswith("integers, seed 0; 2 contractions: 3 bits of each factor")
    assert "special: inf, NaN, zeros; alone" in draws.main.words
    assert [draw.words for draw in _draws(GATED).more] == [*wide[:2], wide[2]]


OTHER_SUMS = """
  %other = linalg.matmul ins(%h, %c : tensor<40x48xbf16>, tensor<48x24xbf16>)
                         outs(%start : tensor<40x24xf32>) -> tensor<40x24xf32>
"""


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("a function between them", "arith.maximumf %t, %zero : f32", "math.exp %t : f32"),
        ("a product between them", "arith.addf %s, %q", "arith.mulf %s, %q"),
        ("a constant between them", "arith.constant 0.0", "arith.constant 0.3"),
        ("sums added to sums", "outs(%start : tensor", "outs(%other : tensor"),
    ],
)
def test_what_is_not_exact_gets_small_integers(what: str, old: str, new: str) -> None:
    assert old in TWO_LAYERS
    text = TWO_LAYERS.replace(old, new)
    if "%other" in new:
        text = text.replace("  %y = linalg", OTHER_SUMS + "  %y = linalg")
    with mlir_context() as context:
        validation = begin(load_module(text, context))
        line = validation.input
    assert "sums of unknown order: integers up to 3" in line.compared, what
    assert "and on random floats" in line.compared and "full range" in line.compared
    assert str(validation.coverage) == "full range; special values"


PRODUCT_BETWEEN = TWO_LAYERS.replace("arith.addf %s, %q", "arith.mulf %s, %q")


def test_what_integers_do_not_show_random_floats_do() -> None:
    """Sums of integers are integers, so rounding them down changes nothing."""

    @dataclass(frozen=True)
    class Floor(tcir.Pass):
        name = "floor"

        def run(self, module: Any) -> None:
            line = r"(%\w+) = arith.mulf (%\w+), (%\w+) : f32.*"
            change_text(line, r"%f = math.floor \2 : f32\n\1 = arith.mulf %f, \3 : f32")(module)

    report = tcir.validate(PRODUCT_BETWEEN, [Floor()])
    assert report.verdict == "different", str(report)
    assert "inputs with random floats" in str(report)
    assert tcir.validate(PRODUCT_BETWEEN, ["canonicalize"])


def test_long_chains() -> None:
    """Sums that are multiplied as tf32 have 11 bits; without a bit for each, small integers."""
    square = """func.func @f(%a: tensor<NxNxf32>) -> tensor<NxNxf32> {
  %z = arith.constant dense<0.0> : tensor<NxNxf32>
  %x = linalg.matmul ins(%a, %a : tensor<NxNxf32>, tensor<NxNxf32>) outs(%z : tensor<NxNxf32>)
    -> tensor<NxNxf32>
  %y = linalg.matmul ins(%x, %a : tensor<NxNxf32>, tensor<NxNxf32>) outs(%z : tensor<NxNxf32>)
    -> tensor<NxNxf32>
  return %y : tensor<NxNxf32>
}"""
    (a,), chain = _drawn(square.replace("N", "24"))
    assert chain is not None and (chain.share, chain.rooms) == (3, ((0, 19), (0, 6), (1, 14)))
    first = _product(a, a)
    _product(first, a)
    _, chain = _drawn(square.replace("N", "600"))
    assert chain is None


def _behind_gated(ops: str, result: str) -> str:
    """GATED, and `ops` on its result %w."""
    text = GATED.replace("  return %w : tensor<40x48xf32>", ops.strip())
    return text.replace("-> tensor<40x48xf32> {", f"-> {result} {{", 1)


def test_a_sum_over_rows_is_of_unknown_order() -> None:
    rows = """
  %sum = tensor.empty() : tensor<1x48xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%w : tensor<40x48xf32>) outs(%sum : tensor<1x48xf32>) {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<1x48xf32>
  return %v : tensor<1x48xf32>"""
    text = _behind_gated(rows, "tensor<1x48xf32>")
    assert _draws(text).main.words.startswith("sums of unknown order")


def test_whole_numbers_are_always_exact() -> None:
    text = """func.func @f(%a: tensor<16x32xi8>, %b: tensor<32x16xi8>, %c: tensor<16x16xi8>)
    -> tensor<16x16xi32> {
  %z = arith.constant dense<0> : tensor<16x16xi32>
  %x = linalg.matmul ins(%a, %b : tensor<16x32xi8>, tensor<32x16xi8>) outs(%z : tensor<16x16xi32>)
    -> tensor<16x16xi32>
  %h = arith.trunci %x : tensor<16x16xi32> to tensor<16x16xi8>
  %y = linalg.matmul ins(%h, %c : tensor<16x16xi8>, tensor<16x16xi8>) outs(%z : tensor<16x16xi32>)
    -> tensor<16x16xi32>
  return %y : tensor<16x16xi32>
}"""
    (a, b, c), chain = _drawn(text)
    assert chain is not None and not chain.contractions
    for array in (a, b, c):
        assert array.min() < -120 and array.max() > 120
    assert tcir.validate(text, ["linalg-generalize-named-ops", "canonicalize", "cse"])


LAYERS = """
func.func @f(%x: tensor<1x8x8x8xf16>, %v: tensor<3x3x8x16xf16>, %w: tensor<3x3x16x8xf16>)
    -> tensor<1x8x8x8xf32> {
  %h = "tc.conv2d"(%x, %v) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x8xf16>, tensor<3x3x8x16xf16>) -> tensor<1x8x8x16xf16>
  %y = "tc.conv2d"(%h, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x8xf16>) -> tensor<1x8x8x8xf32>
  return %y : tensor<1x8x8x8xf32>
}"""


def test_convolutions() -> None:
    """Also of padded layers; the elements of a filter that meet padding stay finite."""
    _, chain = _drawn(LAYERS)
    assert chain is not None and chain.share == 3
    draws = _draws(LAYERS)
    assert [draw.words for draw in draws.more] == [
        "all bits in A", "inf in A", "NaN in A", "all bits in B", "inf in B", "NaN in B",
        "all bits in B of contraction 2",
    ]  # fmt: skip
    for draw in draws.more:
        filters = draw.inputs[1].astype(np.float64)
        assert np.isfinite(np.delete(filters.reshape(9, -1), 4, axis=0)).all(), "but the middle"


@pytest.mark.parametrize(
    ("factors", "start", "exact"),
    [
        ((3, 5), 7, True),
        ((0.375, 5 * 2.0**-20), 2.0**-23, True),
        ((0.375, 5), 2.0**-4, False),  # below the products' quantum
        ((3, 2**11 + 1), 0, True),
        ((2**11 - 1, 2**12 - 1), 0, False),  # 16 of them do not fit 24 bits
        ((1 + 2.0**-11, 1), 0, False),  # tf32 drops the last bit
        ((0.3, 1), 0, False),
    ],
)
def test_sums_show_whether_they_are_exact(
    factors: tuple[float, float], start: float, exact: bool
) -> None:
    dtype = np.float32 if 1 in factors else ml_dtypes.bfloat16 if start else np.float16
    a, b = (np.full((2, 16), each, dtype if abs(each) < 2**11 else np.float64) for each in factors)
    starts = [Known.exact(np.full((2, 2), start, np.float32))]
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T + abs(start)
    assert is_exact([a, b], starts, sizes) == exact


def test_a_largest_element_is_off_by_what_the_elements_are() -> None:
    """As in softmax: what is behind it has a bound, too."""
    rows = """
  %least = arith.constant 0xFF800000 : f32
  %none = tensor.empty() : tensor<40xf32>
  %start = linalg.fill ins(%least : f32) outs(%none : tensor<40xf32>) -> tensor<40xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<40x48xf32>) outs(%start : tensor<40xf32>) {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<40xf32>
  return %v : tensor<40xf32>"""
    text = _behind_gated(rows, "tensor<40xf32>")
    report = tcir.validate(text, ["canonicalize"], inputs="random")
    assert report, str(report)
    with mlir_context() as context:
        module = load_module(text, context)
        validation = begin(module, Settings(inputs="random"))
    draw = validation.main
    assert draw.bound is not None and (draw.bound.errors[0] > 0).all()
    with mlir_context() as context:
        module = load_module(GATED, context)
        each = begin(module, Settings(inputs="random"))
    assert each.main.bound is not None
    ratio = draw.bound.errors[0] / each.main.bound.errors[0].max(axis=1)
    assert (ratio >= 1).all() and (ratio < 1.01).all()
