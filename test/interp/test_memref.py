"""Buffers at the tensor level: upstream's bufferisation is executed as other passes are."""

# ruff: noqa: E501  (lines of MLIR)

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.errors import InputError, PassError

from .test_tensor import integers, run

MATMUL = """func.func @f(%a: tensor<3x8xf16>, %b: tensor<8x5xf16>, %out: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<3x5xf32>) -> tensor<3x5xf32>
  %c = linalg.matmul ins(%a, %b : tensor<3x8xf16>, tensor<8x5xf16>) outs(%init : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %c : tensor<3x5xf32>
}"""
BOUNDARIES = "one-shot-bufferize{bufferize-function-boundaries}"
DENSE = BOUNDARIES.replace("}", " function-boundary-type-conversion=identity-layout-map}")


@pytest.mark.parametrize(
    "passes",
    [
        ["one-shot-bufferize"],
        [BOUNDARIES, "convert-linalg-to-loops", "canonicalize", "cse"],
        [BOUNDARIES, "convert-linalg-to-affine-loops", "func.func(affine-loop-tile{tile-size=3})"],
        [DENSE, "buffer-results-to-out-params{modify-public-functions}", "convert-linalg-to-loops"],
        [BOUNDARIES, "buffer-deallocation-pipeline"],
    ],
)
def test_bufferisation_holds(passes):
    report = tcir.validate(MATMUL, tcir.Pipeline(passes))
    verdicts = [line.verdict for line in report.passes]
    ran = len(passes) - len(report.unchanged)
    assert verdicts == ["reference"] + ["equal"] * ran and ran, str(report)


def test_a_loop_that_starts_late_is_different():
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %x0 = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
      %m = memref.alloc() : memref<4xf32>
      scf.for %i = FIRST to %c4 step %c1 {
        %v = memref.load %x0[%i] : memref<4xf32>
        memref.store %v, %m[%i] : memref<4xf32>
      }
      %r = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
      memref.dealloc %m : memref<4xf32>
      return %r : tensor<4xf32> }"""
    x = integers((4,), "f32")
    (got,) = run(text.replace("FIRST", "%c0"), [x], ((4,), "f32")).outputs
    np.testing.assert_array_equal(got, x)
    (got,) = run(text.replace("FIRST", "%c1"), [x], ((4,), "f32")).outputs
    assert np.isnan(got[0])
    np.testing.assert_array_equal(got[1:], x[1:])


def test_views_share_memory_and_inputs_are_copied():
    text = """memref.global "private" constant @ones : memref<2x3xf32> = dense<1.0>
    func.func @f(%x: memref<4x6xf32>, %y: memref<4x6xf32>) -> (memref<4x6xf32>, memref<24xf32>) {
      %v = memref.subview %x[1, 0] [2, 3] [1, 2] : memref<4x6xf32> to memref<2x3xf32, strided<[6, 2], offset: 6>>
      %one = memref.get_global @ones : memref<2x3xf32>
      linalg.add ins(%v, %one : memref<2x3xf32, strided<[6, 2], offset: 6>>, memref<2x3xf32>)
                 outs(%v : memref<2x3xf32, strided<[6, 2], offset: 6>>)
      %row = memref.subview %y[3, 0] [1, 6] [1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: 18>>
      %first = memref.subview %x[1, 0] [1, 6] [1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: 6>>
      memref.copy %first, %row : memref<6xf32, strided<[1], offset: 6>> to memref<6xf32, strided<[1], offset: 18>>
      %flat = memref.collapse_shape %y [[0, 1]] : memref<4x6xf32> into memref<24xf32>
      return %x, %flat : memref<4x6xf32>, memref<24xf32> }"""
    x, y = integers((4, 6), "f32"), integers((4, 6), "f32", seed=1)
    before = x.copy(), y.copy()
    first, second = run(text, [x, y], ((4, 6), "f32"), ((24,), "f32")).outputs
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])
    x[1:3, ::2] += 1
    y[3] = x[1]
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, y.ravel())


def test_an_output_that_is_read_at_other_places_is_incomplete():
    text = """func.func @f(%x: memref<4x4xf32>) -> memref<4x4xf32> {
      linalg.transpose ins(%x : memref<4x4xf32>) outs(%x : memref<4x4xf32>) permutation = [1, 0]
      return %x : memref<4x4xf32> }"""
    outcome = run(text, [integers((4, 4), "f32")], ((4, 4), "f32"))
    assert "reads other elements than it writes" in outcome.incomplete[0]


@pytest.mark.parametrize("number", [-1, 4])
@pytest.mark.parametrize("op", ["memref.load %m", "tensor.extract %x"])
def test_an_index_is_not_counted_from_the_end(op, number):
    text = f"""func.func @f(%x: tensor<4xf32>) -> tensor<f32> {{
      %i = arith.constant {number} : index
      %m = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
      %v = {op}[%i] : {"memref" if "memref" in op else "tensor"}<4xf32>
      %r = tensor.from_elements %v : tensor<f32>
      return %r : tensor<f32> }}"""
    with pytest.raises(
        InputError, match=r":4:\d+: .*expected indices within \(4,\), got \[" + str(number)
    ):
        run(text, [integers((4,), "f32")], ((), "f32"))


@pytest.mark.parametrize("pipeline", ["matmul", "conv", "gemv-simt", "simt-elementwise"])
def test_pipelines_refuse_buffers_where_they_are(pipeline):
    text = """func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %m = memref.alloc() : memref<8x8xf32>
      linalg.copy ins(%a : tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
      return %a : tensor<8x8xf32> }"""
    with pytest.raises(PassError, match=r"2:\d+: expected .*tensors, got memref<8x8xf32>") as error:
        tcir.compile(text, pipeline)
    assert "smallest accepted example" in str(error.value)


def test_a_program_without_results_is_refused_with_the_way_out():
    text = """func.func @f(%a: memref<8xf32>) {
      %c = arith.constant 1.0 : f32
      linalg.fill ins(%c : f32) outs(%a : memref<8xf32>)
      return }"""
    with pytest.raises(InputError, match="return it\nsmallest accepted example"):
        tcir.validate(text, tcir.Pipeline(["canonicalize"]))


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("memref.alloc(%n) : memref<?xf32>", r"memref.alloc: expected sizes of at least 0, got \[-1\]"),
        ("tensor.empty(%n) : tensor<?xf32>", r"tensor.empty: expected sizes of at least 0, got \[-1\]"),
        ("memref.dim %m, %n : memref<?xf32>", r"memref.dim: expected indices within \(1,\), got \[-1\]"),
        ("memref.cast %m : memref<?xf32> to memref<4xf32>", r"memref.cast: expected shape \[4\], got \(3,\)"),
    ],
)  # fmt: skip
def test_sizes_that_no_buffer_has(ops, expected):
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %n = arith.constant -1 : index
      %three = arith.constant 3 : index
      %m = memref.alloc(%three) : memref<?xf32>
      %got = OPS
      return %x : tensor<4xf32> }"""
    with pytest.raises(InputError, match=":5:.*" + expected):
        run(text.replace("OPS", ops), [integers((4,), "f32")], ((4,), "f32"))


def test_a_copy_between_buffers_of_other_sizes_is_an_error():
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %three = arith.constant 3 : index
      %m = memref.alloc(%three) : memref<?xf32>
      %to = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
      %same = memref.cast %to : memref<4xf32> to memref<?xf32>
      memref.copy %m, %same : memref<?xf32> to memref<?xf32>
      return %x : tensor<4xf32> }"""
    with pytest.raises(InputError, match=r":6:.*memref.copy: expected shape \(4,\), got \(3,\)"):
        run(text, [integers((4,), "f32")], ((4,), "f32"))
