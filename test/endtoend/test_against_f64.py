"""Results without a worst-case bound: judged by their errors against f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.passmanager.pipeline import Pipeline
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.validation.against_f64 import FACTOR, Precise, compare
from tcir.validation.moderate import moderate_inputs
from tcir.validation.report import Report
from tcir.validation.widened import precise

from .breaking import Broken, pick

ROWS, MIDDLE, COLUMNS = 8, 16, 32
BLOCK = """
#own = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<8x16xTYPE>, %w: tensor<16x32xTYPE>, %b: tensor<32xTYPE>)
    -> tensor<8x32xTYPE> {
  %z = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : TYPE
  %e = tensor.empty() : tensor<8x32xf32>
  %s = linalg.fill ins(%z : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x16xTYPE>, tensor<16x32xTYPE>)
    outs(%s : tensor<8x32xf32>) -> tensor<8x32xf32>
  %d = tensor.empty() : tensor<8x32xTYPE>
  %r = linalg.generic {indexing_maps = [#own, affine_map<(i, j) -> (j)>, #own],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<8x32xf32>, tensor<32xTYPE>) outs(%d : tensor<8x32xTYPE>) {
    ^bb0(%u: f32, %c: TYPE, %o: TYPE):
      FUNCTION
      %m = arith.mulf %n, %half : TYPE
      %a = arith.addf %m, %c : TYPE
      linalg.yield %a : TYPE
  } -> tensor<8x32xTYPE>
  return %r : tensor<8x32xTYPE>
}
"""
HALF = "%q = math.atan2 %u, %u : f32  %n = arith.truncf %q : f32 to f16"
"""No bound is carried through `math.atan2`."""


def text(kind: str = "f16", function: str = HALF) -> str:
    return BLOCK.replace("FUNCTION", function).replace("TYPE", kind)


def in_f64(program: str, inputs: list[np.ndarray]) -> Precise:
    from tcir.interp.tensor import run

    with mlir_context() as context:
        module = load_module(program, context)
        signature = signature_of(module)
        results = run(module, "f", inputs, signature.outputs).outputs
        return precise(module, signature, inputs, results)


def drawn(kind: Any) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    shapes = (ROWS, MIDDLE), (MIDDLE, COLUMNS), (COLUMNS,)
    return [generator.standard_normal(shape).astype(kind) for shape in shapes]


def test_the_program_in_f64_is_numpys() -> None:
    inputs = drawn(np.float16)
    x, w, b = (each.astype(np.float64) for each in inputs)
    made = in_f64(text(), inputs)
    expected = np.arctan2(x @ w, x @ w) * 0.5 + b
    assert made.right[0].dtype == np.float64 and len(made.own) == 1
    np.testing.assert_allclose(made.right[0], expected, rtol=1e-13)
    assert np.abs(made.own[0][0] - expected).max() > 1e-5


def test_factors_of_tf32_are_another_own_result() -> None:
    """And none where the factors are f16."""
    inputs = drawn(np.float32)
    made = in_f64(text("f32", "%n = math.exp %u : f32"), inputs)
    x, w = ((each.view(np.uint32) & 0xFFFFE000).view(np.float32) for each in inputs[:2])
    sums = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(made.own[1][0], np.exp(sums) / 2 + inputs[2], rtol=1e-6)
    assert np.abs(made.own[1][0] - made.own[0][0]).max() > 1e-4
    assert made.compared(made.own[1])[0].excess <= 1
    assert Precise(made.right, made.own[:1]).compared(made.own[1])[0].excess > 1


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (
            "%i = arith.bitcast %u : f32 to i32  %j = arith.bitcast %i : i32 to f32"
            "  %n = arith.truncf %j : f32 to f16",
            "arith.bitcast",
        ),
        ("%q = math.fma %u, %u, %u : f32  %n = arith.truncf %q : f32 to f16", "math.fma"),
    ],
)
def test_what_has_no_copy_in_f64_is_named(function: str, named: str) -> None:
    with pytest.raises(IncompleteError, match=named):
        in_f64(text(function=function), drawn(np.float16))


EXACT = np.linspace(1, 2, 1000)


def errors(size: float, at: slice = slice(None)) -> np.ndarray:
    """f16 numbers, some of which are about `size` from `EXACT`."""
    made = EXACT.copy()
    made[at] += size
    return made.astype(np.float16)


@pytest.mark.parametrize(
    ("size", "at", "held"),
    [
        (0.0, slice(None), True),
        (FACTOR * 0.02, slice(None), True),  # and a rounding
        (FACTOR * 0.02 + 0.005, slice(None), False),
        (FACTOR * 0.02 + 0.005, slice(5, 6), False),  # one element: the largest error
        (0.09, slice(None), False),
    ],
)
def test_errors_beside_those_of_the_input_program(size: float, at: slice, held: bool) -> None:
    found = compare(errors(size, at), errors(0.02), EXACT, "the input program")
    assert (found.excess <= 1) == held, found


def test_the_root_mean_square_counts() -> None:
    """All elements are as far off as the reference's worst one."""
    own = errors(0.04, slice(5, 6))
    one, every = (
        compare(errors(0.04, at), own, EXACT, "own") for at in (slice(9, 10), slice(None))
    )
    assert one.excess <= 1 and every.ratio <= 1 < every.excess


@pytest.mark.parametrize(("count", "held"), [(1, True), (2, True), (1000, False)])
def test_many_elements_are_not_all_off_by_a_rounding(count: int, held: bool) -> None:
    """Each may be alone, and so may all of few."""
    exact = np.full(count, 1.5)
    found = compare((exact + 2.0**-10).astype(np.float16), exact.astype(np.float16), exact, "own")
    assert found.ratio <= 1 and (found.excess <= 1) == held, found


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_have_their_places(value: float) -> None:
    own, same, other = (errors(0.0) for _ in range(3))
    own[3] = same[3] = other[4] = value
    assert not compare(same, own, EXACT, "own").failure
    assert "NaN and infinities" in compare(other, own, EXACT, "own").failure
    assert "NaN and infinities" in compare(errors(0.0), own, EXACT, "own").failure


def test_moderate_numbers() -> None:
    """Both factors are inputs, so each has the fourth root of 16 products."""
    with mlir_context() as context:
        module = load_module(text("f32", "%n = math.exp %u : f32"), context)
        x, w, b = moderate_inputs(module, signature_of(module), drawn(np.float32), 0)
    assert np.std(x) == pytest.approx(1 / 2, rel=0.2) and np.std(w) == pytest.approx(0.5, rel=0.1)
    assert 0.5 <= b.min() < 0.7 and 1.3 < b.max() <= 1.5


def of_states(edit: Callable[[Any], None], function: str = HALF) -> Report:
    return tcir.validate(
        text(function=function),
        Pipeline([Broken(Pipeline(["canonicalize"]).passes[0], edit)]),
        inputs="random",
    )


def constant(value: float) -> Callable[[Any], None]:
    """An edit: 0.5 becomes another number."""

    def edit(module: Any) -> None:
        op = pick(module, "arith.constant", value="5.000000e-01 : f16")
        op.attributes["value"] = ir.FloatAttr.get(op.result.type, value)

    return edit


def late_rounding(module: Any) -> None:
    """An edit: the product and the sum are rounded once."""
    cast, product, sum_ = (pick(module, f"arith.{n}", -1) for n in ("truncf", "mulf", "addf"))
    wide = cast.operands[0].type
    with ir.InsertionPoint(product), product.location:
        from tcir._mlir import arith

        half, bias = (arith.ExtFOp(wide, o.operands[1]).result for o in (product, sum_))
        made = arith.MulFOp(cast.operands[0], half).result
        made = arith.TruncFOp(cast.result.type, arith.AddFOp(made, bias).result).result
    sum_.result.replace_all_uses_with(made)


def test_another_rounding_is_right() -> None:
    report = of_states(late_rounding)
    line = report["canonicalize"]
    assert report.verdict == "held" and line.verdict == "within bound", str(report)
    assert "no worst-case bound; error against f64" in line.compared
    assert "of the input program" in line.compared
    assert "numbers around 1 only" in report.summary()


def test_another_factor_is_wrong() -> None:
    """Its error is 1 % of some results, ten roundings."""
    report = of_states(constant(0.505))
    line = report["canonicalize"]
    assert line.verdict == "different" and "no worst-case bound" in line.compared, str(report)
    assert line.difference is not None and "in f64" in line.difference.expected


def test_without_a_copy_in_f64_the_reason_is_given() -> None:
    function = HALF.replace("%n =", "%k = arith.bitcast %u : f32 to i32  %n =")
    report = of_states(late_rounding, function)
    assert report.verdict == "different"
    assert "not compared with f64: no copy in f64 of arith.bitcast" in str(report)


def test_results_without_a_number_are_no_reference() -> None:
    """Of NaN alone all states are equal."""
    function = "%k = math.exp %u : f32  %l = arith.negf %k : f32  %q = math.log %l : f32" + (
        "  %n = arith.truncf %q : f32 to f16"
    )
    report = of_states(lambda _: None, function)
    assert report.verdict == "incomplete" and "no finite result" in str(report), str(report)
