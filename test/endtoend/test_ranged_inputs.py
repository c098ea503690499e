"""Inputs over the full range, and the bounds that know infinities and NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.pipelines import layers
from tcir.program.source import load_module, mlir_context
from tcir.validation import compare
from tcir.validation.draws import OPEN, Bound
from tcir.validation.rules import RULES, Known
from tcir.validation.validator import begin

from .constants_text import with_constants
from .epilogue_text import TRUNCATE, Fused
from .test_layers import LAYERS

Array = np.ndarray[Any, Any]
F16, F32 = np.float16, np.float32
ENDS = np.array(
    [0.0, np.inf, np.nan, 3e38, 2e38, 1e30, 65520.0, 65504.0, 1e-40, 1e-45, 1.0, 89.0], F32
)
OPS: dict[str, Any] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.cmpf": np.less,
    "arith.truncf": lambda a: a.astype(F16),
    "math.exp": np.exp,
    "math.log": np.log,
    "math.rsqrt": lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(F32),
}


def _operand(draw: np.random.Generator) -> Known:
    """Numbers of all sizes; a third at an end, two thirds off, some open."""
    size = 4000
    ends = np.concatenate([ENDS, -ENDS])
    value = (draw.standard_normal(size) * 2.0 ** draw.integers(-20, 20, size)).astype(F32)
    value = np.where(draw.random(size) < 1 / 3, draw.choice(ends, size), value)
    off = np.where(np.isfinite(value), np.abs(value), 0) * draw.choice(
        [0.0, 2.0**-20, 0.1, 3.0], size
    )
    error = off.astype(np.float64)
    return Known(value, error, error**2).opened(draw.random(size) < 1 / 16)


def _within(known: Known, draw: np.random.Generator) -> Array:
    """Other numbers that the operand may be."""
    size = known.value.shape
    share = draw.choice([-1.0, 0.0, 1.0, 0.5], size)
    with np.errstate(all="ignore"):
        moved = known.wide + share * np.where(known.open, 0, known.error)
        moved = np.clip(moved, known.wide - known.error, known.wide + known.error).astype(F32)
        beyond = np.abs(moved.astype(np.float64) - known.wide) > known.error
    moved = np.where(beyond | (known.error == 0), known.value, moved)
    return np.where(known.open, draw.choice(np.concatenate([ENDS, -ENDS]), size), moved)


@pytest.mark.parametrize("name", OPS)
def test_what_an_op_makes_of_numbers_within_their_errors_is_within_its_own(name: str) -> None:
    draw, op = np.random.default_rng(1), OPS[name]
    count = 1 if name.split(".")[1] in ("truncf", "exp", "log", "rsqrt") else 2
    known = [_operand(draw) for _ in range(count)]
    with np.errstate(all="ignore"):
        result = RULES[name](op(*(each.value for each in known)), *known)
        assert not np.isnan(result.error).any()
        for _ in range(8):
            got = op(*(_within(each, draw) for each in known))
            off = np.abs(got.astype(np.float64) - result.wide)
            same = ~compare.unequal(got, result.value)  # signs of zeros, too
            assert (same | ((off <= result.error) & (result.error > 0)) | result.open).all()
    assert result.open.mean() < 0.9, "something is claimed"


def test_a_rounding_is_off_near_a_tie_only() -> None:
    value = np.array([1.0003, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-20, 1e-9, 65519.9, 3.0], F32)
    error = np.full(6, 2.0**-18)
    error[5] = 0.003
    known = RULES["arith.truncf"](value.astype(F16), Known(value, error, error**2))
    assert (known.error[:3] == [0, 2.0**-10, 2.0**-10]).all()
    assert known.error[3] > 0, "a zero of either sign"
    assert not known.open[4] and known.error[4] == 0
    assert known.error[5] == 2 * 2.0**-9


@pytest.mark.parametrize("exponent", [0.5, 3.0, -1.5])
def test_powers_of_zeros_are_exact(exponent: float) -> None:
    x = np.array([-0.0, 0.0, 1.5], F32)
    with np.errstate(all="ignore"):
        result = RULES["math.powf"](
            x ** F32(exponent), Known.exact(x), Known.exact(np.full(3, exponent, F32))
        )
    assert (result.error[:2] == 0).all() and result.error[2] > 0


MATMUL = """func.func @f(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>)
    -> tensor<4x4xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>)
    -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}"""


def _errors(text: str, inputs: list[Array], *, cut: bool = False) -> tuple[Array, Array]:
    """The reference's results on these inputs, and what they may be off.

    cut: where factors of f32 are cut to tf32
    """
    from tcir.validation import bounds, propagation

    with mlir_context() as context:
        module = load_module(text, context)
        (function,) = (op.operation for op in module.body.operations)
        how = bounds.Sums()
        tf32 = bounds.sums_of("float32", "sm_100a") if cut else how
        (known,) = propagation.carried(function, inputs, lambda op: how, propagation.UNKNOWN, tf32)
    return known.value, known.error


def test_an_infinity_times_what_tf32_has_not() -> None:
    """2^-140 is 0 in tf32, and its product with an infinity NaN; that of 2^-130 is none."""
    a, b, c = np.full((4, 4), 0.2, F32), np.ones((4, 4), F32), np.zeros((4, 4), F32)
    a[1, 2], b[2] = np.inf, [1.0, 2.0**-130, 2.0**-140, -(2.0**-140)]
    value, error = _errors(MATMUL, [a, b, c], cut=True)
    assert (np.abs(value[1]) == np.inf).all()
    assert error[1].tolist() == [0, 0, np.inf, np.inf] and np.isfinite(error[0]).all()


def test_factors_that_tf32_cuts() -> None:
    """Whatever the type of the first input: what was widened to f32 is not cut."""
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((2, 4, 4)).astype(F32)
    narrow = [each.astype(np.float16).astype(F32) for each in (a, b)]
    zeros = np.zeros((4, 4), F32)
    cut, whole = (_errors(MATMUL, [*each, zeros], cut=True)[1] for each in ((a, b), narrow))
    sizes = np.abs(a).astype(float) @ np.abs(b).astype(float)
    off = np.abs(_tf32(a) @ _tf32(b) - a.astype(float) @ b.astype(float))
    assert (
        (off <= cut).all() and (cut <= 2.0**-8 * sizes).all() and (whole < 2.0**-15 * sizes).all()
    )


def _tf32(array: Array) -> Array:
    return (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(F32).astype(float)


WEIGHTS = """
#mn = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
func.func @f(%q: tensor<32x64xi8>, %s: tensor<32xf32>, %x: tensor<16x64xf32>)
    -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %w = linalg.generic {indexing_maps = [#mn, #m, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<32x64xi8>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%code: i8, %scale: f32, %o: f32):
    %0 = arith.sitofp %code : i8 to f32
    %1 = arith.mulf %0, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<32x64xf32>
  %t = tensor.empty() : tensor<64x32xf32>
  %b = linalg.transpose ins(%w : tensor<32x64xf32>) outs(%t : tensor<64x32xf32>)
    permutation = [1, 0]
  %c = arith.constant dense<0.0> : tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %b : tensor<16x64xf32>, tensor<64x32xf32>)
    outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
"""


def test_weights_of_i8_as_f32() -> None:
    """Their product is of tf32, though the first input is of integers."""
    report = tcir.validate(WEIGHTS, "layers")
    assert report.verdict == "held", report


def test_the_class_of_a_sum() -> None:
    """Certain where its infinite products decide it; open where an order of finite ones does."""
    a, b, c = np.ones((4, 4), F32), np.full((4, 4), 0.2, F32), np.zeros((4, 4), F32)
    a[0, 1], a[1, 2], a[2] = np.nan, np.inf, [3e38, 3e38, -3e38, -3e38]
    b[:, 3] = [2, 2, 2, 2]
    value, error = _errors(MATMUL, [a, b, c])
    assert np.isnan(value[0]).all() and (error[0] == 0).all()
    assert (value[1] == np.inf).all() and (error[1] == 0).all()
    assert (error[2, :3] < 1e34).all(), "four products of 6e37 do not overflow"
    assert np.isinf(error[2, 3]), "6e38 - 6e38 is 0, infinite or NaN"
    assert np.isfinite(error[3]).all() and (np.abs(value[3]) > error[3]).all()


def test_a_sum_of_one_product_is_exact() -> None:
    draw = np.random.default_rng(0)
    a, b = np.zeros((4, 4), F16), draw.standard_normal((4, 4)).astype(F16)
    a[[0, 1, 2], [3, 0, 1]], a[3] = draw.standard_normal(3).astype(F16), 0.3
    c = np.zeros((4, 4), F32)
    text = MATMUL.replace("f32", "f16", 2)
    text = text.replace("tensor<4x4xf32>, tensor<4x4xf32>)", "tensor<4x4xf16>, tensor<4x4xf16>)")
    value, error = _errors(text, [a, b, c])
    assert (error[:3] == 0).all() and (error[3] > 0).all()
    assert (value[:3] == (a.astype(np.float64) @ b.astype(np.float64))[:3]).all()
    c[0] = 1.0  # is added to it
    assert (_errors(text, [a, b, c])[1][0] > 0).all()


def test_subnormal_factors_have_the_exponent_of_normal_ones() -> None:
    """2^-24 counts as 2^-14 in f16, so that the tensor core cuts 2^-48 off, beside 2^-25."""
    text = MATMUL.replace("f32", "f16", 2)
    text = text.replace("tensor<4x4xf32>, tensor<4x4xf32>)", "tensor<4x4xf16>, tensor<4x4xf16>)")
    a, b, c = np.zeros((4, 4), F16), np.zeros((4, 4), F16), np.zeros((4, 4), F32)
    a[:, :2], b[0], b[1] = 2.0**-24, 0.5, 2.0**-24
    value, error = _errors(text, [a, b, c])
    assert (value == 2.0**-25 + 2.0**-48).all() and (error >= 2.0**-48).all()
    a[:, :2] = 2.0**-14  # the same sums are exact of normal numbers
    assert (_errors(text, [a, b, c])[1] == 0).all()


TWO_PRODUCTS = """func.func @f(%x: tensor<3x24x16xf16>, %w: tensor<3x16x16xf16>,
    %v: tensor<3x16x24xf16>) -> tensor<3x24x24xf32> {
  %z = arith.constant dense<0.0> : tensor<3x24x16xf32>
  %h = linalg.batch_matmul ins(%x, %w : tensor<3x24x16xf16>, tensor<3x16x16xf16>)
    outs(%z : tensor<3x24x16xf32>) -> tensor<3x24x16xf32>
  %t = arith.truncf %h : tensor<3x24x16xf32> to tensor<3x24x16xf16>
  %s = arith.constant dense<0.0> : tensor<3x24x24xf32>
  %y = linalg.batch_matmul ins(%t, %v : tensor<3x24x16xf16>, tensor<3x16x24xf16>)
    outs(%s : tensor<3x24x24xf32>) -> tensor<3x24x24xf32>
  return %y : tensor<3x24x24xf32>
}"""


def test_products_of_rounded_products_that_are_subnormal() -> None:
    passes = list(layers.build(layers.LayersOptions()).passes)
    names = [getattr(each, "name", each) for each in passes]
    report = tcir.validate(TWO_PRODUCTS, passes[: names.index("tile-gemm") + 1], seed=16)
    assert report.verdict == "held" and "full range" in str(report).splitlines()[-1], report


def test_what_a_function_makes_of_the_largest_number_may_be_open_in_part() -> None:
    """gelu(-inf) is -inf times what may be 0: that one may be anything, the others may not."""
    reference = np.array([np.nan, 1.0, 2.0, 3.0], F32)
    errors = np.array([np.inf, 1e-6, 1e-6, 0.0])
    squares = [errors**2]
    assert Bound.of([errors], squares, [reference]) is None
    assert Bound.of([np.full(4, np.inf)], squares, [reference], open_share=OPEN) is None
    bound = Bound.of([errors], squares, [reference], open_share=OPEN)
    assert bound is not None and np.isfinite(bound.limits).all()
    got = [np.array([np.inf, 1.0, 2.0000005, 3.0], F32)]
    assert compare.first_difference([reference], got, bound.errors) is None
    assert 0 < compare.largest_ratio([reference], got, bound.errors)[1] < 1
    assert np.isfinite(compare.mean_squares([reference], got, bound.squares)).all()
    wrong = [np.array([np.inf, 1.0, np.nan, 3.0], F32)]
    assert compare.first_difference([reference], wrong, bound.errors) is not None


def test_a_sum_overflows_if_what_is_rounded_does() -> None:
    """elu(x) = x + (exp(0) - 1) at the largest x."""
    x = Known.exact(np.array([np.finfo(F32).max]))
    for off, certain in ((1e-7, True), (2.0**103, False)):
        small = Known(np.zeros(1, F32), np.array([off]), np.array([off**2]))
        assert (
            np.isfinite(RULES["arith.addf"](np.float32(x.value), x, small).error).all() == certain
        )


SMALL = """func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %o = tensor.empty() : tensor<8x16xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<8x16xf32>) outs(%o : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}"""


SPLIT = ["split-layers{simt=true}"]


def test_the_verdict_says_what_was_executed() -> None:
    report = tcir.validate(SMALL, SPLIT, strict=True)
    assert report.summary() == "held: 2 steps; full range; special values", str(report)
    assert report.as_dict()["coverage"] == {
        "executed": ["full range", "special values"],
        "small_numbers": None,
    }


def test_small_numbers_are_no_success_when_strict() -> None:
    words = "2 steps; equal on small numbers: standard normal numbers only"
    report = tcir.validate(SMALL, SPLIT, inputs="random")
    assert report.ok and report.summary() == f"held: {words}"
    strict = tcir.validate(SMALL, SPLIT, inputs="random", strict=True)
    assert strict.summary() == f"small numbers: {words}"
    assert (strict.ok, strict.exit_code) == (False, 2)


def test_rows_show_both_ends_and_each_special_value() -> None:
    with mlir_context() as context:
        validation = begin(load_module(SMALL, context))
    draws = validation.draws.more
    assert [draw.words for draw in draws] == ["random floats, special values", "full range"]
    special, full = (draw.inputs[0] for draw in draws)
    assert np.isnan(special).any() and np.isposinf(special).any() and np.isneginf(special).any()
    assert (np.signbit(special) & (special == 0)).any()
    assert ((special != 0) & (np.abs(special) < 2.0**-126)).any()
    assert (np.isfinite(special).all(axis=1)).sum() >= 3, "not all results are NaN"
    sizes = np.abs(full).max(axis=1)
    assert (sizes > 2.0**10).any() and (sizes < 2.0**-4).any() and np.isfinite(full).all()


def test_single_products_beside_constants() -> None:
    """Each sum is one product, the results are exact, and what is added is subnormal."""
    weights = np.random.default_rng(2).standard_normal((16, 8)).astype(F16)
    case = Fused("%t = arith.addf %s, %b : f32\n" + TRUNCATE, {"b": ("f32", "n")}, m=24, n=8, k=16)
    with mlir_context() as context:
        validation = begin(load_module(with_constants(case.linalg(), {1: weights}), context))
    (single,) = (draw for draw in validation.draws.more if draw.words == "single products")
    x, bias = single.inputs
    assert ((x != 0).sum(axis=1) <= 1).all() and 2 < (x == 0).all(axis=1).sum() < 6
    assert (bias != 0).all() and (np.abs(bias) < 2.0**-126).all()
    assert single.bound is not None and (single.bound.errors[0] == 0).mean() > 0.9
    sums = x.astype(np.float64) @ weights.astype(np.float64)
    ties = sums / np.spacing(np.abs(single.reference[0]).astype(F16)).astype(np.float64) % 1 == 0.5
    assert ties.mean() > 1 / 16


def test_numbers_that_are_near_each_other() -> None:
    """A variance as the mean of squares less the square of the mean is lost in f64, too."""
    text = (LAYERS / "std.mlir").read_text()
    with mlir_context() as context:
        validation = begin(load_module(text, context))
    lost = []
    for draw in validation.draws.more:
        with np.errstate(all="ignore"):
            wide = draw.inputs[0].astype(np.float64)
            means = wide.mean(axis=1, keepdims=True)
            one_pass = np.sqrt((wide**2 - means**2).sum(axis=1) / 39)
            off = np.abs(one_pass - draw.reference[0]) / draw.reference[0]
        lost.append(np.nanmax(np.where(np.isfinite(off), off, 0)))
    assert max(lost) > 2.0**-20
