"""Rules of `scf` and `affine` around whole tensors, against numpy."""

# ruff: noqa: E501  (lines of MLIR)

from __future__ import annotations

import numpy as np
import pytest

from tcir.errors import InputError

from .test_tensor import integers, run

SUMS = """
func.func @f(%a: tensor<9x5xf32>) -> tensor<9x5xf32> {{
  %low = arith.constant {low} : index
  %high = arith.constant {high} : index
  %step = arith.constant {step} : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %low to %high step %step iter_args(%acc = %a) -> (tensor<9x5xf32>) {{
    %b = affine.apply affine_map<(d0)[s0] -> (d0 - s0)>(%i)[%c1]
    %n = affine.min affine_map<(d0) -> (2, 9 - d0)>(%i)
    %m = affine.max affine_map<(d0)[s0] -> (1, d0 floordiv 4 + s0 ceildiv 2)>(%n)[%c1]
    %x = tensor.extract_slice %acc[%b, 0] [%m, 5] [1, 1] : tensor<9x5xf32> to tensor<?x5xf32>
    %y = tensor.extract_slice %acc[%i, 0] [%m, 5] [1, 1] : tensor<9x5xf32> to tensor<?x5xf32>
    %z = arith.addf %x, %y : tensor<?x5xf32>
    %w = tensor.insert_slice %z into %acc[%i, 0] [%m, 5] [1, 1] : tensor<?x5xf32> into tensor<9x5xf32>
    scf.yield %w : tensor<9x5xf32>
  }}
  return %r : tensor<9x5xf32>
}}
"""


@pytest.mark.parametrize(
    ("low", "high", "step"), [(1, 9, 1), (2, 9, 3), (1, 8, 5), (5, 5, 1), (7, 2, 1)]
)
def test_a_loop_carries_a_tensor(low: int, high: int, step: int) -> None:
    a = integers((9, 5), "f32")
    want = a.copy()
    for i in range(low, high, step):
        want[i] = want[i - 1] + want[i]
    text = SUMS.format(low=low, high=high, step=step)
    (got,) = run(text, [a.copy()], ((9, 5), "f32")).outputs
    assert np.array_equal(got, want)


def test_a_step_of_zero_is_no_claim() -> None:
    outcome = run(SUMS.format(low=1, high=9, step=0), [integers((9, 5), "f32")], ((9, 5), "f32"))
    assert outcome.incomplete and "positive step" in outcome.incomplete[0]


BRANCH = """
func.func @f(%a: tensor<4xf32>, %c: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %if = tensor.extract %c[] : tensor<i1>
  %r:2 = scf.if %if -> (tensor<4xf32>, tensor<4xf32>) {
    %x = arith.addf %a, %a : tensor<4xf32>
    scf.yield %x, %a : tensor<4xf32>, tensor<4xf32>
  } else {
    %x = arith.negf %a : tensor<4xf32>
    scf.yield %a, %x : tensor<4xf32>, tensor<4xf32>
  }
  scf.if %if {
    scf.yield
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch(taken: bool) -> None:
    a = integers((4,), "f32")
    want = (a + a, a) if taken else (a, -a)
    got = run(BRANCH, [a, np.array(taken)], ((4,), "f32"), ((4,), "f32")).outputs
    assert all(np.array_equal(x, y) for x, y in zip(got, want, strict=True))


PARALLEL = """
func.func @f(%a: tensor<6x8xf32>, %b: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<8x6xf32>) {
  %e = tensor.empty() : tensor<8x6xf32>
  %r:2 = scf.forall (%i, %j) = (0, 1) to (6, 8) step (2, 3) shared_outs(%p = %a, %q = %e) -> (tensor<6x8xf32>, tensor<8x6xf32>) {
    %n = affine.min affine_map<(d0) -> (3, 8 - d0)>(%j)
    %x = tensor.extract_slice %b[%i, %j] [2, %n] [1, 1] : tensor<6x8xf32> to tensor<2x?xf32>
    %y = arith.negf %x : tensor<2x?xf32>
    %one = tensor.extract_slice %b[%i, %j] [1, 1] [1, 1] : tensor<6x8xf32> to tensor<1x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %p[%i, %j] [2, %n] [1, 1] : tensor<2x?xf32> into tensor<6x8xf32>
      tensor.parallel_insert_slice %one into %q[%j, %i] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<8x6xf32>
    }
  }
  return %r#0, %r#1 : tensor<6x8xf32>, tensor<8x6xf32>
}
"""


def test_iterations_insert_into_what_they_share() -> None:
    a, b = integers((6, 8), "f32"), integers((6, 8), "f32", seed=1)
    first, second = run(PARALLEL, [a, b], ((6, 8), "f32"), ((8, 6), "f32")).outputs
    want = a.copy()
    want[:, 1:] = -b[:, 1:]
    assert np.array_equal(first, want)
    assert np.array_equal(second[1:8:3, 0:6:2], b[0:6:2, 1:8:3].T)


@pytest.mark.parametrize(
    ("edit", "to"),
    [
        ("%y into %p[%i, %j] [2, %n]", "%y into %p[0, %j] [2, %n]"),  # rows 0 and 1 in all of them
        ("extract_slice %b[%i, %j] [2, %n]", "extract_slice %p[%i, 0] [2, %n]"),  # of a neighbour
    ],
    ids=["written twice", "read beside a write"],
)
def test_iterations_have_no_order(edit: str, to: str) -> None:
    inputs = [integers((6, 8), "f32"), integers((6, 8), "f32", seed=1)]
    assert edit in PARALLEL
    with pytest.raises(InputError, match="depends on the order of iterations"):
        run(PARALLEL.replace(edit, to), inputs, ((6, 8), "f32"), ((8, 6), "f32"))


def test_an_op_without_a_rule_is_named_once_for_its_place() -> None:
    text = """
    func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %x = tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32> loc("a.mlir":3:1)
      %y = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32> loc("a.mlir":3:1)
      %z = tosa.abs %y : (tensor<4xf32>) -> tensor<4xf32> loc("a.mlir":4:1)
      return %z : tensor<4xf32>
    }
    """
    found = run(text, [integers((4,), "f32")], ((4,), "f32")).incomplete
    assert found == [f"a.mlir:{n}:1: tosa.abs: no rule at tensor level" for n in (3, 4)]
