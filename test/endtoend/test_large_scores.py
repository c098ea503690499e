"""Inputs on which a softmax whose maximum is not subtracted has other results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.passmanager.pipeline import Pipeline
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.validation.draws import Draw
from tcir.validation.large_scores import large_scores, with_maxima
from tcir.validation.moderate import moderate_inputs

from .breaking import Broken, pick

SOFTMAX = """
#own = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>) -> tensor<8x32xf16> {
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %r = tensor.empty() : tensor<8xf32>
  %d = tensor.empty() : tensor<8x32xf16>
  %s = linalg.fill ins(%z : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x32xf16>)
    outs(%s : tensor<8x32xf32>) -> tensor<8x32xf32>
  %q = linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
    ^bb0(%a: f32, %o: f32):
      SCORE
      linalg.yield %b : f32
  } -> tensor<8x32xf32>
  %l = linalg.fill ins(%low : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#own, #row], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<8x32xf32>) outs(%l : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.maximumf %a, %o : f32
      linalg.yield %b : f32
  } -> tensor<8xf32>
  %t = linalg.generic {indexing_maps = [#own, #row, #own],
      iterator_types = ["parallel", "parallel"]}
      ins(%q, %m : tensor<8x32xf32>, tensor<8xf32>) outs(%e : tensor<8x32xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %b = arith.subf %a, %c : f32
      %g = math.exp %b : f32
      linalg.yield %g : f32
  } -> tensor<8x32xf32>
  %n = linalg.fill ins(%z : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %u = linalg.generic {indexing_maps = [#own, #row], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<8x32xf32>) outs(%n : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.addf %a, %o : f32
      linalg.yield %b : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#own, #row, #own],
      iterator_types = ["parallel", "parallel"]}
      ins(%t, %u : tensor<8x32xf32>, tensor<8xf32>) outs(%d : tensor<8x32xf16>) {
    ^bb0(%a: f32, %c: f32, %o: f16):
      %b = arith.divf %a, %c : f32
      %h = math.atan2 %b, %one : f32
      %g = arith.truncf %h : f32 to f16
      linalg.yield %g : f16
  } -> tensor<8x32xf16>
  return %y : tensor<8x32xf16>
}
"""
"""No bound is carried through `math.atan2`."""
PLAIN = "%b = arith.negf %a : f32"
BOUNDED = "%b = math.tanh %a : f32"


def text(score: str = PLAIN) -> str:
    return SOFTMAX.replace("SCORE", score)


def found(program: str) -> Draw | str | None:
    """The large scores of a program."""
    from tcir.interp.tensor import run

    with mlir_context() as context:
        module = load_module(program, context)
        signature = signature_of(module)
        zeros = [np.zeros(spec.shape, spec.dtype) for spec in signature.inputs]

        def results(copy: ir.Module, inputs: Any) -> Any:
            return run(copy, signature.name, inputs, signature_of(copy).outputs).outputs

        def inputs(gain: float) -> list[np.ndarray]:
            return moderate_inputs(module, signature, zeros, 0, gain)

        return large_scores(module, results, inputs)


def test_the_exponentials_of_all_maxima_are_infinite() -> None:
    draw = found(text())
    assert isinstance(draw, Draw) and draw.exponentials
    x, w = (each.astype(np.float32) for each in draw.inputs)
    assert (-(x @ w)).max() > np.log(np.finfo(np.float32).max)
    assert np.isfinite(draw.reference[0]).all()


def test_the_maxima_are_further_results() -> None:
    with mlir_context() as context:
        copy, count = with_maxima(load_module(text(), context))
        assert count == 1 and [s.shape for s in signature_of(copy).outputs] == [(8, 32), (8,)]


def test_bounded_scores_have_a_reason() -> None:
    """Their maximum need not be subtracted."""
    assert found(text(BOUNDED)) == (
        "the exponentials of 1 of 1 softmaxes are finite on all inputs tried"
    )


def test_a_program_without_a_softmax_has_no_large_scores() -> None:
    assert found(text().replace("arith.subf", "arith.mulf")) is None


def without_maximum(module: Any) -> None:
    """An edit: the maximum is not subtracted."""
    op = pick(module, "arith.subf")
    op.result.replace_all_uses_with(op.operands[0])


@pytest.mark.parametrize("score", [PLAIN, BOUNDED])
def test_a_maximum_that_is_not_subtracted(score: str) -> None:
    """It is found where it matters: bounded scores have the same results without it."""
    steps = Pipeline([Broken(Pipeline(["canonicalize"]).passes[0], without_maximum)])
    report = tcir.validate(text(score), steps, inputs="random")
    line = report["canonicalize"]
    assert line.held == (score == BOUNDED), str(report)
    assert ("results are NaN" in line.compared) == (score == PLAIN)
    assert ("1 of 1 softmaxes" in report.summary()) == (score == BOUNDED)
