"""Convolutions and products in one function: pipeline layers, beside numpy and at every level."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.errors import PassError

from .layers_text import classifier, patches, perceptron, stem

ROOT = Path(__file__).resolve().parents[2]

Array = np.ndarray[Any, Any]
BF16, F32 = ml_dtypes.bfloat16, np.float32


def whole(generator: np.random.Generator, *shape: int, dtype: Any = BF16) -> Array:
    """Whole numbers from -3 to 3, no zeros."""
    return (generator.integers(1, 4, shape) * generator.choice([-1, 1], shape)).astype(dtype)


def convolved(x: Array, w: Array, stride: int, pad: int) -> Array:
    """NHWC by HWCF, in float64."""
    image = np.pad(x.astype(float), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(image, w.shape[:2], (1, 2))
    return np.einsum("npqcrs,rsck->npqk", windows[:, ::stride, ::stride], w.astype(float))


def run(text: str, arrays: list[Array], shape: tuple[int, ...]) -> tuple[Array, list[str]]:
    """The result from PTX, and the names of the launches."""
    out = np.full(shape, 7, F32)
    kernel = tcir.compile(text, "layers")
    kernel(*arrays, out)
    return out, [each.title for each in kernel.launches.launches]


def test_classifier_beside_numpy() -> None:
    generator = np.random.default_rng(0)
    x, w = whole(generator, 2, 8, 8, 16), whole(generator, 3, 3, 16, 16)
    b = whole(generator, 16, dtype=F32)
    v, c = whole(generator, 16, 24), whole(generator, 24, dtype=F32)
    out, names = run(classifier(2, 8, 16, 24), [x, w, b, v, c], (2, 24))
    assert names == ["f_0_conv_2d_nhwc_hwcf", "f_1_truncf", "f_2_matmul"]
    h = np.maximum(convolved(x, w, 1, 1) + b, 0).astype(F32).astype(BF16)
    mean = (h.astype(float).sum((1, 2)) / 64).astype(F32).astype(BF16)
    want = mean.astype(float) @ v.astype(float) + c
    assert np.allclose(out, want, rtol=2.0**-18, atol=2.0**-12)


def test_patch_embedding_beside_numpy() -> None:
    generator = np.random.default_rng(0)
    x, w = whole(generator, 2, 16, 16, 8), whole(generator, 4, 4, 8, 32)
    v = whole(generator, 32, 24)
    out, names = run(patches(2, 16, 4, 8, 32, 24), [x, w, v], (32, 24))
    assert names == ["f_0_conv", "f_1_matmul"]
    h = convolved(x, w, 4, 0).astype(F32).astype(BF16).reshape(32, 32)
    want = h.astype(float) @ v.astype(float)
    assert (want == want.astype(F32)).all(), "sums that f32 has not"
    assert (out == want).all()


@pytest.mark.parametrize("inputs", ["integers", "random"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(classifier(2, 8, 16, 24), id="classifier"),
        pytest.param(patches(2, 16, 4, 8, 32, 24), id="patches"),
    ],
)
def test_every_level(text: str, inputs: Any) -> None:
    report = tcir.validate(text, "layers", inputs=inputs)
    assert report.ok, str(report)


@pytest.mark.parametrize("text", [perceptron(40, [32, 48, 24]), stem(16, 16)])
def test_one_kind_alone(text: str) -> None:
    """Products compile as by gemm, convolutions as by conv."""
    alone = "conv" if "conv_2d" in text else "gemm"
    names = [
        [each.title for each in tcir.compile(text, pipeline).launches.launches]
        for pipeline in ("layers", alone)
    ]
    assert names[0] == names[1]


@pytest.mark.parametrize("pipeline", ["gemm", "conv-implicit-gemm"])
def test_the_others_name_it(pipeline: str) -> None:
    with pytest.raises(PassError, match="layers takes convolutions and products in one function"):
        tcir.compile(patches(2, 16, 4, 8, 32, 24), pipeline)


# --- calls -----------------------------------------------------------------------------------

CALLS = """
func.func private @layer(%x: tensor<40x32xbf16>, %w: tensor<32x32xbf16>, %init: tensor<40x32xf32>) -> tensor<40x32xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x32xbf16>
  %z = linalg.fill ins(%zero : f32) outs(%init : tensor<40x32xf32>) -> tensor<40x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<40x32xbf16>, tensor<32x32xbf16>) outs(%z : tensor<40x32xf32>) -> tensor<40x32xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<40x32xf32>) outs(%e : tensor<40x32xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<40x32xbf16>
  return %h : tensor<40x32xbf16>
}
func.func @twice(%x: tensor<40x32xbf16>, %w: tensor<32x32xbf16>, %v: tensor<32x32xbf16>, %init: tensor<40x32xf32>) -> tensor<40x32xbf16> {
  %h = func.call @layer(%x, %w, %init) : (tensor<40x32xbf16>, tensor<32x32xbf16>, tensor<40x32xf32>) -> tensor<40x32xbf16>
  %y = func.call @layer(%h, %v, %init) : (tensor<40x32xbf16>, tensor<32x32xbf16>, tensor<40x32xf32>) -> tensor<40x32xbf16>
  return %y : tensor<40x32xbf16>
}
"""  # noqa: E501
"""Two layers by one private function, which is called twice."""


def test_calls_beside_numpy() -> None:
    generator = np.random.default_rng(0)
    x, w, v = (whole(generator, *shape) for shape in ((40, 32), (32, 32), (32, 32)))
    out = np.full((40, 32), 7, BF16)
    kernel = tcir.compile(CALLS, "gemm")
    kernel(x, w, v, out)
    assert [each.title for each in kernel.launches.launches] == ["twice_0_matmul", "twice_1_matmul"]
    h = (x.astype(float) @ w.astype(float)).astype(F32).astype(BF16)
    want = (h.astype(float) @ v.astype(float)).astype(F32).astype(BF16)
    assert (out == want).all()


@pytest.mark.parametrize("inputs", ["integers", "random"])
def test_calls_at_every_level(inputs: Any) -> None:
    report = tcir.validate(CALLS, "gemm", inputs=inputs)
    assert report.ok, str(report)


def test_a_private_function_with_ops_of_tc() -> None:
    """Upstream's inliner leaves them; the kernels are those of the program without the call."""
    text = (ROOT / "examples" / "nvfp4_mlp.mlir").read_text()
    head, arrow, rest = text.partition("-> tensor<136x96xf16> {")
    arguments = head.partition("func.func @mlp(")[2]
    names, kinds = zip(*re.findall(r"(%\w+): (tensor<[^>]*>)", arguments), strict=True)
    called = f"""func.func @mlp({arguments}{arrow}
      %r = func.call @inner({", ".join(names)}) : ({", ".join(kinds)}) -> tensor<136x96xf16>
      return %r : tensor<136x96xf16>
    }}"""
    inner = f"func.func private @inner({arguments}{arrow}{rest}"
    direct, through = (tcir.compile(t, "gemm") for t in (text, f"{inner}\n{called}"))
    same, wanted = (re.sub(r"\.loc.*", "", kernel.ptx) for kernel in (through, direct))
    assert same == wanted and through.launch_table == direct.launch_table


def test_recursion_is_refused() -> None:
    call = "func.call @layer(%h, %v, %init) : (tensor<40x32xbf16>, tensor<32x32xbf16>, "
    call += "tensor<40x32xf32>) -> tensor<40x32xbf16>"
    inside = call.replace("%h, %v", "%x, %w")
    recursive = CALLS.replace("linalg.matmul ins(%x, ", "linalg.matmul ins(%r, ")
    recursive = recursive.replace("  %c =", f"  %r = {inside}\n  %c =")
    with pytest.raises(PassError, match=r"without recursion, got func\.call @layer"):
        tcir.compile(recursive, "gemm")
