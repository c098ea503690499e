"""Kernels from numpy arrays, beside numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tcir
from tcir import (
    compile_attention,
    compile_block_scaled_matmul,
    compile_conv2d,
    compile_matmul,
    formats,
)

Array = NDArray[Any]
RANDOM = np.random.default_rng(7)
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def whole(*shape: int, dtype: Any = np.float16, most: int = 3) -> Array:
    """Numbers whose sums are exact, none of them 0."""
    numbers = RANDOM.integers(1, most + 1, shape) * RANDOM.choice([-1, 1], shape)
    return numbers.astype(dtype)


# --- attention -----------------------------------------------------------------------------------


def attended(scores: Array, v: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ v)


FEW = RANDOM.standard_normal((2, 4, 40, 32)).astype(np.float16)
KEYS, VALUES = RANDOM.standard_normal((2, 2, 2, 56, 32)).astype(np.float16)
KEPT = RANDOM.random((2, 1, 1, 56)) > 0.3
BIAS = RANDOM.standard_normal((4, 40, 56)).astype(np.float32)
ROW, KEY = np.arange(40)[:, None] + 16, np.arange(56)
ATTENTIONS: dict[str, tuple[dict[str, Any], Callable[[Array], Array]]] = {
    "plain": ({}, lambda s: s / math.sqrt(32)),
    "causal": ({"causal": True}, lambda s: np.where(ROW >= KEY, s / math.sqrt(32), -np.inf)),
    "window": (
        {"causal": True, "window": (9, None), "scale": 0.5},
        lambda s: np.where((ROW >= KEY) & (KEY >= ROW - 9), s / 2, -np.inf),
    ),
    "both ways": (
        {"window": (9, 3), "scale": 0.5},
        lambda s: np.where((ROW + 3 >= KEY) & (KEY >= ROW - 9), s / 2, -np.inf),
    ),
    "mask": ({"mask": KEPT}, lambda s: np.where(KEPT, s / math.sqrt(32), -np.inf)),
    "lengths": (
        {"key_lengths": np.array([56, 21], np.int32), "mask": BIAS},
        lambda s: np.where(
            KEY < np.array([56, 21])[:, None, None, None], s / math.sqrt(32) + BIAS, -np.inf
        ),
    ),
    "bias": ({"mask": BIAS, "out": "float32"}, lambda s: s / math.sqrt(32) + BIAS),
    "softcap": (
        {"softcap": 2.0, "mask": BIAS.astype(np.float16)},
        lambda s: 2 * np.tanh(s / math.sqrt(32) / 2) + BIAS.astype(np.float16),
    ),
    "softcap and mask": (
        {"softcap": 2.0, "mask": KEPT, "scale": 0.25},
        lambda s: np.where(KEPT, 2 * np.tanh(s / 8), -np.inf),
    ),
}


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name: str, target: str) -> None:
    options, scores = ATTENTIONS[name]
    kernel = compile_attention(FEW, KEYS, VALUES, lse=True, target=target, **options)
    q, k, v = (each.astype(float) for each in (FEW, KEYS, VALUES))
    k, v = k.repeat(2, axis=1), v.repeat(2, axis=1)
    changed = scores(q @ k.swapaxes(-1, -2))
    out, lse = kernel.run()
    assert np.abs(out - attended(changed, v)).max() < 2.0**-8
    np.testing.assert_allclose(lse, np.log(np.exp(changed).sum(-1)), atol=1e-4)


@pytest.mark.parametrize(
    ("arrays", "options", "words"),
    [
        ((FEW, KEYS, VALUES.astype(np.float32)), {}, "must have the same type"),
        ((FEW, KEYS[:, :, 1:], VALUES), {}, r"expected q of \[B, H, M, D\]"),
        ((FEW, KEYS, VALUES), {"scale": 0.0}, "scale: expected a positive number, got 0.0"),
        ((FEW, KEYS, VALUES), {"softcap": -1.0}, "softcap: expected a positive number"),
        ((FEW, KEYS, VALUES), {"window": (-1, 3)}, "window: expected numbers of keys before"),
        ((FEW, KEYS, VALUES), {"mask": KEPT[..., 1:]}, "mask: expected a shape that broadcasts"),
        ((FEW, KEYS, VALUES), {"mask": KEPT.astype(np.int32)}, "mask: expected one of i1, f16"),
        (
            (FEW, KEYS, VALUES),
            {"key_lengths": np.array([56, 21, 3], np.int32)},
            r"expected int32 of shape \[2\], a number for each batch, got i32 of \[3\]",
        ),
        ((FEW, KEYS, VALUES), {"out": "bfloat16"}, "out: expected one of f16, f32"),
    ],
)
def test_attention_rejects(arrays: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(tcir.InputError, match=words):
        compile_attention(*arrays, **options)


# --- matmul --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
)
def test_types(dtype: Any) -> None:
    a, b = whole(136, 80, dtype=dtype), whole(80, 48, dtype=dtype)
    y = compile_matmul(a, b).run()
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, a.astype("f4") @ b.astype("f4"))


def test_integers() -> None:
    a, b = whole(128, 64, dtype=np.int8, most=127), whole(64, 32, dtype=np.int8, most=127)
    y = compile_matmul(a, b).run()
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, a.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize("first", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_two_types_of_fp8(first: Any) -> None:
    (second,) = {ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2} - {first}
    a, b = whole(136, 80, dtype=first), whole(80, 48, dtype=second)
    np.testing.assert_array_equal(compile_matmul(a, b).run(), a.astype("f4") @ b.astype("f4"))
    with pytest.raises(tcir.InputError, match=r"or both f8 .*, got f8E.* and f16"):
        compile_matmul(a, whole(80, 48))


@pytest.mark.parametrize("taps", [(3, 3), (2, 5)])
def test_padding_by_name(taps: tuple[int, int]) -> None:
    x, w = whole(1, 8, 9, 16), whole(*taps, 16, 16)
    (top, left), (rows, columns) = ((n - 1) // 2 for n in taps), taps
    sides = ((top, rows - 1 - top), (left, columns - 1 - left))
    same = compile_conv2d(x, w, padding="same").run()
    assert same.shape == x.shape
    wide = np.pad(x.astype("f4"), [(0, 0), *sides, (0, 0)])
    seen = np.lib.stride_tricks.sliding_window_view(wide, taps, (1, 2))
    np.testing.assert_array_equal(same, np.einsum("npqcrs,rsck->npqk", seen, w.astype("f4")))
    none = compile_conv2d(x, w, padding="valid").run()
    seen = np.lib.stride_tricks.sliding_window_view(x.astype("f4"), taps, (1, 2))
    np.testing.assert_array_equal(none, np.einsum("npqcrs,rsck->npqk", seen, w.astype("f4")))
    with pytest.raises(tcir.InputError, match="expected stride 1 with 'same'"):
        compile_conv2d(x, w, padding="same", stride=2)
    with pytest.raises(tcir.InputError, match="'same' or 'valid', got 'full'"):
        compile_conv2d(x, w, padding="full")


class Tensor:
    """Of a library that is not installed here."""

    __module__ = "torch"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1.0]], r"got list; np\.asarray\(a, 'float16'\) makes one$"),
        (Tensor(), r"got Tensor; take its array: a\.numpy\(\) of a tensor on the CPU"),
        (whole(8, 8).astype(">f2"), r"byte order \(>f2\): a\.astype\('float16'\)$"),
    ],
    ids=["list", "tensor", "byte order"],
)
def test_ways_out(given: object, said: str) -> None:
    """Of the functions and of kernels alike."""
    with pytest.raises(tcir.InputError, match=said):
        compile_matmul(cast(Array, given), whole(8, 8))
    with pytest.raises(tcir.InputError, match=said):
        compile_matmul(whole(8, 8), whole(8, 8)).run(given, whole(8, 8))


def test_ways_out_of_other_types() -> None:
    """ONNX's QLinearConv has uint8 where MLIR's i8 has no sign."""
    text = """func.func @qlinearconv(%x: tensor<8xi8>) -> tensor<8xi32> {
      %y = arith.extui %x : tensor<8xi8> to tensor<8xi32>
      return %y : tensor<8xi32>
    }"""
    kernel, x = tcir.compile(text, "simt-elementwise"), np.arange(200, 208, dtype=np.uint8)
    with pytest.raises(tcir.InputError, match=r"int8\[8\], got uint8\[8\]; .*a\.view\('int8'\)$"):
        kernel.run(x)
    np.testing.assert_array_equal(kernel.run(x.view("int8")), x)
    with pytest.raises(tcir.InputError, match=r"got float32\[8\]; a\.astype\('int8'\)$"):
        kernel.run(x.astype("f4"))


def test_a_batch_by_another_pipeline() -> None:
    a, b = whole(2, 48, 64), whole(2, 64, 40)
    kernel = compile_matmul(a, b, out="f16", pipeline="matmul-warp", stages=2, target="sm_90")
    assert "tile-matmul-warp" in kernel.pipeline and kernel.target == "sm_90"
    want = (a.astype("f4") @ b.astype("f4")).astype("f2")
    np.testing.assert_array_equal(kernel.run(), want)


@pytest.mark.parametrize("activation", FUNCTIONS)
def test_one_kernel_does_all(activation: str) -> None:
    a, b = whole(130, 72), whole(72, 40)
    bias, residual = whole(40, dtype=np.float32), whole(130, 40)
    kernel = compile_matmul(
        a, b, bias=bias, residual=residual, activation=activation, out="bfloat16"
    )
    assert len(kernel.launches.launches) == 1
    sums = a.astype("f8") @ b.astype("f8") + bias + residual
    got = kernel.run().astype("f8")
    np.testing.assert_allclose(got, FUNCTIONS[activation](sums), rtol=2**-8, atol=2**-8)


def test_other_inputs_of_the_same_shape() -> None:
    kernel = compile_matmul(whole(64, 64), whole(64, 64))
    a, b = whole(64, 64), whole(64, 64)
    np.testing.assert_array_equal(kernel.run(a, b), a.astype("f4") @ b.astype("f4"))
    with pytest.raises(tcir.InputError, match=r"expected an array float16\[64, 64\], got float16"):
        kernel.run(a[:32], b)


def test_it_is_a_program_for_tc_opt_and_is_validated() -> None:
    kernel = compile_matmul(whole(64, 64), whole(64, 32), activation="relu")
    assert "linalg.matmul" in kernel.mlir and ".visible .entry" in kernel.ptx
    report = kernel.validate()
    assert report.verdict == "held" and report.passes[-1].name == "llvm-to-ptx"
    assert tcir.validate(kernel.mlir, "gemm").verdict == "held"


# --- conv2d --------------------------------------------------------------------------------------


def convolution(x: Array, w: Array, stride: Any, padding: Any, dilation: Any) -> Array:
    """By the definition, in f64."""
    (sh, sw), (dh, dw), (rows, columns) = stride, dilation, padding
    x = np.pad(x.astype("f8"), ((0, 0), rows, columns, (0, 0)))
    r, s, _, k = w.shape
    p = (x.shape[1] - dh * (r - 1) - 1) // sh + 1
    q = (x.shape[2] - dw * (s - 1) - 1) // sw + 1
    y = np.zeros((x.shape[0], p, q, k))
    for i in range(r):
        for j in range(s):
            part = x[:, i * dh : i * dh + sh * p : sh, j * dw : j * dw + sw * q : sw]
            y += part[:, :p, :q] @ w[i, j].astype("f8")
    return y


@pytest.mark.parametrize(
    ("filters", "given", "means"),
    [
        ((3, 3), {"padding": 1}, ((1, 1), ((1, 1), (1, 1)), (1, 1))),
        ((3, 3), {"padding": 1, "stride": 2}, ((2, 2), ((1, 1), (1, 1)), (1, 1))),
        ((5, 3), {"padding": (2, 1), "stride": (1, 2)}, ((1, 2), ((2, 2), (1, 1)), (1, 1))),
        ((3, 3), {"padding": ((0, 1), (2, 1)), "dilation": 2}, ((1, 1), ((0, 1), (2, 1)), (2, 2))),
        ((1, 1), {}, ((1, 1), ((0, 0), (0, 0)), (1, 1))),
    ],
)
def test_conv2d(filters: tuple[int, int], given: dict[str, Any], means: Any) -> None:
    x, w = whole(2, 13, 14, 16), whole(*filters, 16, 24)
    y = compile_conv2d(x, w, **given).run()
    np.testing.assert_array_equal(y, convolution(x, w, *means))


def test_a_whole_layer_of_resnet() -> None:
    x, w = whole(1, 28, 28, 128), whole(3, 3, 128, 128)
    bias, residual = whole(128, dtype=np.float32), whole(1, 28, 28, 128)
    kernel = compile_conv2d(
        x, w, padding=1, bias=bias, residual=residual, activation="relu", out=np.float16
    )
    sums = convolution(x, w, (1, 1), ((1, 1), (1, 1)), (1, 1)) + bias + residual
    np.testing.assert_array_equal(kernel.run(), np.maximum(sums, 0).astype("f2"))


# --- block_scaled_matmul -------------------------------------------------------------------------


def decoded(codes: Array, scales: Array) -> Array:
    block = codes.shape[-1] // scales.shape[-1]
    return codes.astype("f8") * np.repeat(scales.astype("f8"), block, axis=-1)


def scaled(elements: Any, scale: Any, block: int, *shape: int) -> tuple[Array, Array]:
    """Random codes, and scales of a few magnitudes."""
    codes = whole(*shape, dtype=np.float32, most=3).astype(elements)
    exponents = RANDOM.integers(-2, 3, (*shape[:-1], shape[-1] // block))
    return codes, (2.0**exponents).astype(scale)


NVFP4 = (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, 16)
MXFP8 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, 32)


@pytest.mark.parametrize("kind", [NVFP4, MXFP8])
@pytest.mark.parametrize("rows", [(136,), ()])
def test_block_scaled(kind: tuple[Any, Any, int], rows: tuple[int, ...]) -> None:
    """A matrix by a matrix, and by a vector."""
    a, b = scaled(*kind, 256, 128), scaled(*kind, *rows, 128)
    kernel = compile_block_scaled_matmul(a, b)
    np.testing.assert_array_equal(kernel.run(), decoded(*a) @ decoded(*b).T)


def test_a_linear_layer_in_nvfp4() -> None:
    a, b = scaled(*NVFP4, 128, 256), scaled(*NVFP4, 64, 256)
    bias = whole(64, dtype=np.float32)
    kernel = compile_block_scaled_matmul(
        a, b, global_scales=(0.5, 4.0), bias=bias, activation="relu", out="float16"
    )
    want = np.maximum(2 * (decoded(*a) @ decoded(*b).T) + bias, 0).astype("f2")
    np.testing.assert_array_equal(kernel.run(), want)


@pytest.mark.parametrize("name", ["nvfp4", "mxfp4", "mxfp8_e4m3"])
def test_what_formats_quantise_makes_is_taken(name: str) -> None:
    x, y = (RANDOM.standard_normal((rows, 128)).astype("f4") for rows in (136, 40))
    a, b = formats.quantise(x, name), formats.quantise(y, name)
    kernel = compile_block_scaled_matmul(a, b)
    want = a.dequantise().astype("f8") @ b.dequantise().astype("f8").T
    np.testing.assert_allclose(kernel.run(), want, rtol=1e-5, atol=1e-4)


# --- refusals ------------------------------------------------------------------------------------

F16, F32, I8 = np.ones((8, 8), "f2"), np.ones((8, 8), "f4"), np.ones((8, 8), "i1")
IMAGE, FILTER = np.ones((1, 8, 8, 8), "f2"), np.ones((3, 3, 8, 8), "f2")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: compile_matmul(cast("Array", [[1.0]]), F16),
            "a: expected a numpy array, got list",
        ),
        (
            lambda: compile_matmul(F16[0], F16),
            r"a: expected 2 or 3 dimensions, got shape \[8\]",
        ),
        (
            lambda: compile_matmul(F16, F32),
            "a and b must have the same type, one of .*, got f16 and f32",
        ),
        (
            lambda: compile_matmul(F16.astype("c8"), F16),
            "a: expected elements of .*, got complex64",
        ),
        (lambda: compile_matmul(F16, F16[:4]), r"got \[8, 8\] and \[4, 8\]"),
        (lambda: compile_matmul(F16, F16, bias=F32), r"bias: expected \[8\] of f32"),
        (
            lambda: compile_matmul(F16, F16, residual=F32[0]),
            r"residual: expected \[8, 8\] of f32",
        ),
        (
            lambda: compile_matmul(F16, F16, activation="relu6"),
            "activation: expected relu, gelu",
        ),
        (
            lambda: compile_matmul(F16, F16, out="int8"),
            "out: expected one of f32, f16, bf16, got i8",
        ),
        (
            lambda: compile_matmul(I8, I8, activation="relu"),
            "sums of i8 are returned unchanged",
        ),
        (lambda: compile_matmul(F16, F16, pipeline="gem"), "gemm"),
        (lambda: compile_matmul(F16, F16, tiles=3), "tiles"),
        (lambda: compile_conv2d(F16, FILTER), "x: expected 4 dimensions"),
        (lambda: compile_conv2d(IMAGE, FILTER[:, :, :4]), "with the same C"),
        (
            lambda: compile_conv2d(IMAGE, FILTER, stride=0),
            "stride: expected an integer of at least 1",
        ),
        (
            lambda: compile_conv2d(IMAGE, FILTER, padding=cast("int", None)),
            "padding: expected an integer",
        ),
        (lambda: compile_conv2d(IMAGE, FILTER, padding=(1, -1)), "padding: .* of at least 0"),
        (lambda: compile_conv2d(IMAGE[:, :2], FILTER), "expected an image of at least 3 x 3"),
        (lambda: compile_block_scaled_matmul((F16, F16), (F16, F16)), "multiply no other"),
        (
            lambda: compile_block_scaled_matmul(cast("Any", F16), cast("Any", F16)),
            "a: expected a result of tcir.formats.quantise",
        ),
    ],
)
def test_refusal(make: Callable[[], object], words: str) -> None:
    with pytest.raises(tcir.Error, match=words):
        make()
