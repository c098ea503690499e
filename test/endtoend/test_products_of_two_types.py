"""Factors cast to f32 of which only one is narrow, or both of other types: multiplied as tf32.

And integers with zero points, which CUDA cores multiply.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir

from .oracle import DTYPES, Array

TYPES = [
    ("gemm", "f16", "f32"), ("gemm", "f32", "bf16"), ("gemm", "f16", "bf16"),
    ("gemm", "f8E4M3FN", "f16"), ("matmul-warp", "bf16", "f32"),
]  # fmt: skip


def widened(name: str, kind: str, element: str) -> str:
    """A cast of an argument to f32; of f32 none."""
    return f"%{name}f = arith.extf %{name} : {kind} to {kind.replace(element, 'f32')}\n" * (
        element != "f32"
    )


def product(a: str, b: str) -> str:
    """[40, 64] times [64, 48]."""
    left, right = f"tensor<40x64x{a}>", f"tensor<64x48x{b}>"
    names = [f"%{n}f" if element != "f32" else f"%{n}" for n, element in zip("ab", (a, b))]
    return f"""
    func.func @f(%a: {left}, %b: {right}) -> tensor<40x48xf32> {{
      %z = arith.constant dense<0.0> : tensor<40x48xf32>
      {widened("a", left, a)}
      {widened("b", right, b)}
      %c = linalg.matmul ins({", ".join(names)} : tensor<40x64xf32>, tensor<64x48xf32>)
        outs(%z : tensor<40x48xf32>) -> tensor<40x48xf32>
      return %c : tensor<40x48xf32>
    }}"""


def whole(shape: tuple[int, ...], element: str, seed: int) -> Array:
    """Numbers without 0 that every type has, and of f16 and wider more than bf16 has."""
    generator = np.random.default_rng(seed)
    most = 3 if element.startswith("f8") else 256 if element == "bf16" else 1024
    values = generator.integers(1, most, shape) * generator.choice([-1, 1], shape)
    return values.astype(DTYPES[element])


@pytest.mark.parametrize(
    ("pipeline", "a", "b"),
    TYPES,
)
def test_product(pipeline: str, a: str, b: str) -> None:
    kernel = tcir.compile(product(a, b), pipeline, validate=True)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    assert len(kernel.launches.launches) == 1 + sum(each in ("f16", "bf16") for each in (a, b))
    arrays = whole((40, 64), a, 1), whole((64, 48), b, 2)
    result = np.full((40, 48), 77, np.float32)
    assert not kernel(*arrays, result).findings
    wide = [each.astype(np.float64) for each in arrays]
    sums, sizes = wide[0] @ wide[1], abs(wide[0]) @ abs(wide[1])
    assert sizes.max() > 2**15 and np.all(np.abs(result - sums) <= sizes * 2.0**-20)
    assert sizes.max() >= 2**24 or result.tobytes() == sums.astype(np.float32).tobytes()


@pytest.mark.parametrize("pipeline", ["gemm", "matmul-warp"])
def test_random(pipeline: str) -> None:
    report = tcir.validate(product("f16", "f32"), pipeline, inputs="random")
    assert report.ok and report.passes[-1].verdict == "within bound", str(report)


def test_in_one_body() -> None:
    """Where the cast is inside the product there is no tensor of f32 to store."""
    text = product("f16", "f32").replace("f32>, tensor<64x48xf32>)", "f16>, tensor<64x48xf32>)")
    text = text.replace("%af, %b :", "%a, %b :")
    with pytest.raises(tcir.PassError, match=r"by ops of their own .arith.extf on tensors"):
        tcir.compile(text, "gemm")


@pytest.mark.parametrize(
    ("pipeline", "batch"),
    [("gemm", 0), ("simt-elementwise", 2)],
)
def test_zero_points(pipeline: str, batch: int) -> None:
    sizes = [f"{batch}x"] * bool(batch)
    a, b, c = (f"tensor<{''.join(sizes)}{s}>" for s in ("16x32xi8", "32x24xi8", "16x24xi32"))
    name = "quantized_batch_matmul" if batch else "quantized_matmul"
    kernel = tcir.compile(
        f"""
    func.func @f(%a: {a}, %b: {b}, %start: {c}) -> {c} {{
      %p = arith.constant -7 : i32
      %q = arith.constant 121 : i32
      %c = linalg.{name} ins(%a, %b, %p, %q : {a}, {b}, i32, i32) outs(%start : {c}) -> {c}
      return %c : {c}
    }}""",
        pipeline,
        validate=True,
    )
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    generator = np.random.default_rng(3)
    inputs: list[Any] = [
        generator.integers(-128, 128, spec.shape).astype(spec.dtype)
        for spec in kernel.signature.inputs
    ]
    result = np.full_like(inputs[2], 77)
    assert not kernel(*inputs, result).findings
    wide = [each.astype(np.int64) for each in inputs]
    assert np.array_equal(result, (wide[0] + 7) @ (wide[1] - 121) + wide[2])


def test_zero_points_of_a_convolution() -> None:
    x, w, y = "tensor<1x6x6x16xi8>", "tensor<3x3x16x8xi8>", "tensor<1x4x4x8xi32>"
    kernel = tcir.compile(
        f"""
    func.func @f(%x: {x}, %w: {w}, %start: {y}) -> {y} {{
      %p = arith.constant -7 : i32
      %q = arith.constant 121 : i32
      %c = linalg.conv_2d_nhwc_hwcf_q ins(%x, %w, %p, %q : {x}, {w}, i32, i32)
        outs(%start : {y}) -> {y}
      return %c : {y}
    }}""",
        "conv",
        validate=True,
    )
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    generator = np.random.default_rng(4)
    inputs = [
        generator.integers(-128, 128, spec.shape).astype(spec.dtype)
        for spec in kernel.signature.inputs
    ]
    result = np.full_like(inputs[2], 77)
    assert not kernel(*inputs, result).findings
    image, filters, start = (each.astype(np.int64) for each in inputs)
    windows = np.lib.stride_tricks.sliding_window_view(image + 7, (3, 3), (1, 2))
    wanted = np.einsum("npqcrs,rsck->npqk", windows, filters - 121) + start
    assert np.array_equal(result, wanted)
