"""What is no product, as PyTorch's importer writes it (`layers/*.mlir`), on CUDA cores.

Normalisation, softmax, activations, pooling: through all levels, and against numpy and scipy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tcir

from .breaking import Edit, change_text, run_broken

Array = np.ndarray[Any, Any]
LAYERS = Path(__file__).parent / "layers"
F16, F32, E4M3 = np.float16, np.float32, ml_dtypes.float8_e4m3fn
IMAGE = [(2, 8, 9, 7)]
MATRIX = [(6, 40)]


def text(name: str) -> str:
    """The layer as imported."""
    return (LAYERS / f"{name}.mlir").read_text()


def windows(x: Array, edge: float) -> Array:
    """3 x 3 with stride 2 and padding 1, of NCHW."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=edge)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]


def _norm(x: Array, axes: Any, epsilon: float = 1e-5) -> Array:
    mean = x.mean(axes, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(x.var(axes, keepdims=True) + epsilon))


def _groups(x: Array, w: Array, b: Array) -> Array:
    normal = _norm(x.reshape(2, 2, -1), 2).reshape(x.shape)
    return normal * w[:, None, None] + b[:, None, None]


def _batch(x: Array, w: Array, b: Array, mean: Array, variance: Array) -> Array:
    scale, shift, mean, variance = (a[:, None, None] for a in (w, b, mean, variance))
    return (x - mean) / np.sqrt(np.abs(variance) + 1e-5) * scale + shift


def _tanh_gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.float32(7.977240e-01) * (x + 0.044715 * x**3)))


def _pooled_indices(x: Array) -> list[Array]:
    """The maxima, and where each first is in its image."""
    seen = windows(x, -np.inf)
    numbers = np.arange(63).reshape(1, 1, 9, 7).astype(float)
    places = np.broadcast_to(windows(numbers, -1), seen.shape).reshape(*seen.shape[:4], 9)
    first = seen.reshape(*seen.shape[:4], 9).argmax(-1)
    return [seen.max((4, 5)), np.take_along_axis(places, first[..., None], -1)[..., 0]]


def _bytes(x: Array) -> Array:
    return np.clip(np.rint(x.astype(F32) * F32(12.5)), -128, 127).astype(np.int8)


ERF = scipy.special.erf
ORACLES: dict[str, tuple[list[tuple[int, ...]], Any, Any]] = {
    "softmax": (MATRIX, lambda x: scipy.special.softmax(x, 1), F32),
    "softmax_f16": ([(2, 6, 40)], lambda x: scipy.special.softmax(x, 1), F16),
    "softmax_attention": ([(4, 128, 128)], lambda x: scipy.special.softmax(x, 2), F16),
    "log_softmax": (MATRIX, lambda x: scipy.special.log_softmax(x, 1), F32),
    "layer_norm": ([*MATRIX, (40,), (40,)], lambda x, w, b: _norm(x, 1) * w + b, F32),
    "layer_norm_f16": ([(2, 6, 40), (40,), (40,)], lambda x, w, b: _norm(x, 2) * w + b, F16),
    "layer_norm_bert": ([(2, 64, 768), (768,), (768,)],
                        lambda x, w, b: _norm(x, 2, 1e-12) * w + b, F32),
    "rms_norm": ([*MATRIX, (40,)],
                 lambda x, w: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * w, F32),
    "batch_norm": ([*IMAGE, *[(8,)] * 4], _batch, F32),
    "group_norm": ([(2, 8, 5, 3), (8,), (8,)], _groups, F32),
    "gelu": (MATRIX, lambda x: x / 2 * (1 + ERF(x / np.sqrt(2))), F32),
    "gelu_f16": (MATRIX, lambda x: x / 2 * (1 + ERF(x / np.sqrt(2))), F16),
    "gelu_tanh": (MATRIX, _tanh_gelu, F32),
    "silu": (MATRIX, lambda x: x / (1 + np.exp(-x)), F16),
    "sigmoid": (MATRIX, lambda x: 1 / (1 + np.exp(-x)), F32),
    "softplus": (MATRIX, lambda x: np.log1p(np.exp(x)), F32),
    "mish": (MATRIX, lambda x: x * np.tanh(np.log1p(np.exp(x))), F32),
    "elu": (MATRIX, lambda x: np.where(x > 0, x, np.expm1(x)), F32),
    "leaky_relu": (MATRIX, lambda x: np.where(x > 0, x, 0.01 * x), F32),
    "hardswish": (MATRIX, lambda x: x * np.clip(x + 3, 0, 6) / 6, F32),
    "std": (MATRIX, lambda x: x.std(1, ddof=1), F32),
    "norm": (MATRIX, lambda x: np.sqrt((x**2).sum(1, keepdims=True)), F32),
    "pow3": (MATRIX, lambda x: x**3, F32),
    "pow_half": (MATRIX, lambda x: np.sqrt(x), F32),
    "avg_pool": (IMAGE, lambda x: windows(x, 0).mean((4, 5)), F32),
    "avg_pool_inside": (IMAGE, lambda x: np.nanmean(windows(x, np.nan), (4, 5)), F32),
    "max_pool": (IMAGE, lambda x: windows(x, -np.inf).max((4, 5)), F32),
    "max_pool_indices": (IMAGE, _pooled_indices, F32),
    "global_avg_pool": (IMAGE, lambda x: x.mean((2, 3), keepdims=True), F32),
    "mean_hw": (IMAGE, lambda x: x.mean((2, 3)), F32),
    "argmax": (MATRIX, lambda x: x.argmax(1).astype(np.int64), F32),
    "max_dim": (MATRIX, lambda x: [x.max(1), x.argmax(1)], F32),
    "upsample": (IMAGE, lambda x: x.repeat(2, 2).repeat(2, 3), F32),
    "cat1": (MATRIX * 2, lambda x, y: np.concatenate([x, y], 1), F32),
    "avg_pool1d": ([(2, 8, 20)], lambda x: x.reshape(2, 8, 10, 2).mean(3), F32),
    "sum_all": (MATRIX, lambda x: np.asarray(x.sum()), F32),
    "tril": (MATRIX, np.tril, F32),
    "greater": (MATRIX, lambda x: x > 0.5, F32),
    "to_f8": (MATRIX, lambda x: x.astype(F32).astype(E4M3), F32),
    "quantise": (MATRIX, _bytes, F32),
    "dequantise": ([*MATRIX, (40,)], lambda x, s: (x * s.astype(F32)).astype(F32), np.int8),
    "relu_i8": (MATRIX, lambda x: np.maximum(x, 0), np.int8),
    "max_pool_i8": (IMAGE, lambda x: windows(x, -128).max((4, 5)), np.int8),
}  # fmt: skip
"""Shapes of the inputs, what the layer is in float64, and the type."""
BYTES = ("greater", "to_f8", "quantise", "dequantise", "relu_i8", "max_pool_i8")
"""Layers with numbers of a byte."""
LARGE = ("softmax_attention", "layer_norm_bert")
POSITIVE = ("pow_half", "batch_norm")
EXACT = (
    "leaky_relu", "max_pool", "max_pool_indices", "argmax", "max_dim", "avg_pool",
    "upsample", "cat1", "avg_pool1d", "sum_all", "tril", "avg_pool_inside", "global_avg_pool",
    "mean_hw", "std", "norm", *BYTES,
)  # fmt: skip
"""Layers of ops that IEEE 754 rounds: the same bits at every level."""
REORDERED = ("global_avg_pool", "mean_hw", "norm", "sum_all")
"""Of them, sums in f32 that a group of threads shares: their order is the kernel's."""


@pytest.mark.parametrize("inputs", ["integers", "random"])
@pytest.mark.parametrize("name", [n for n in ORACLES if n not in LARGE])
def test_every_level(name: str, inputs: Any) -> None:
    strict = inputs == "integers"
    report = tcir.validate(text(name), "simt-elementwise", inputs=inputs, orders=1, strict=strict)
    assert report.ok, str(report)
    exact = name in EXACT and not (name in REORDERED and inputs == "random")
    within = set() if exact else {"within bound"}
    assert {line.verdict for line in report.passes} <= {"reference", "equal"} | within, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)


@pytest.mark.parametrize("name", [n for n in ORACLES if n not in BYTES])
def test_against_numpy(name: str) -> None:
    """In float64, without the rounding of each op: a few units of the type, or of 1."""
    shapes, oracle, dtype = ORACLES[name]
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(shape).astype(dtype) * dtype(3) for shape in shapes]
    if name in POSITIVE:
        inputs = [np.abs(each) + dtype(0.5) for each in inputs]
    wanted = oracle(*(each.astype(np.float64) for each in inputs))
    wanted = wanted if isinstance(wanted, list) else [wanted]
    indices = [name == "argmax", True]  # of the results, which are whole
    kinds = [np.int64 if indices[n] else dtype for n in range(len(wanted))]
    results = [np.zeros(want.shape, kind) for want, kind in zip(wanted, kinds, strict=True)]
    report = tcir.compile(text(name), "simt-elementwise")(*inputs, *results)
    assert not report.findings
    unit = float(np.finfo(dtype).eps)
    for want, got in zip(wanted, results, strict=True):
        room = 0 if got.dtype == np.int64 else unit * (32 * np.abs(want) + 32)
        assert (np.abs(got - want) <= room).all()


@pytest.mark.parametrize("name", BYTES)
def test_bytes_against_numpy(name: str) -> None:
    """Bit for bit; floats up to beyond 448, the largest of f8E4M3FN."""
    shapes, oracle, dtype = ORACLES[name]
    generator = np.random.default_rng(0)
    if dtype is np.int8:
        inputs: list[Array] = [generator.integers(-128, 128, shapes[0], np.int8)]
        inputs += [generator.standard_normal(shape).astype(F32) for shape in shapes[1:]]
    else:
        exponents = generator.integers(-12, 11, shapes[0])
        inputs = [(generator.standard_normal(shapes[0]) * 2.0**exponents).astype(F32)]
    want = oracle(*inputs)
    out = np.zeros(want.shape, want.dtype)
    tcir.compile(text(name), "simt-elementwise")(*inputs, out)
    assert out.tobytes() == want.tobytes()
    assert name != "to_f8" or np.isnan(want.astype(F32)).any()


OPS = """
  %a = arith.{0}i %x, %y : tensor<6x40xi8>
  %b = arith.xori %a, %x : tensor<6x40xi8>
  %c = arith.maxui %b, %y : tensor<6x40xi8>
  %d = arith.shrui %c, %k : tensor<6x40xi8>
  %e = arith.{1} %d : tensor<6x40xi8> to tensor<6x40xi32>
  %f = arith.muli %e, %n : tensor<6x40xi32>
  %g = arith.trunci %f : tensor<6x40xi32> to tensor<6x40xi8>
  %p = arith.cmpi ult, %g, %x : tensor<6x40xi8>
  %h = arith.select %p, %g, %d : tensor<6x40xi1>, tensor<6x40xi8>
  %i = arith.uitofp %h : tensor<6x40xi8> to tensor<6x40xf32>
  %j = arith.sitofp %g : tensor<6x40xi8> to tensor<6x40xf32>
  %q = arith.subf %i, %j : tensor<6x40xf32>
  %z = arith.fptosi %q : tensor<6x40xf32> to tensor<6x40xi8>"""
CODES = """
  %a = arith.extf %x : tensor<6x40x{0}> to tensor<6x40xf16>
  %b = arith.extf %y : tensor<6x40x{0}> to tensor<6x40xf32>
  %c = arith.extf %a : tensor<6x40xf16> to tensor<6x40xf32>
  %d = arith.mulf %c, %b : tensor<6x40xf32>
  %p = arith.cmpf olt, %d, %b : tensor<6x40xf32>
  %e = arith.truncf %d : tensor<6x40xf32> to tensor<6x40x{0}>
  %k = arith.constant dense<1.5> : tensor<6x40x{0}>
  %f = arith.select %p, %e, %k : tensor<6x40xi1>, tensor<6x40x{0}>
  %g = arith.bitcast %f : tensor<6x40x{0}> to tensor<6x40xi8>
  %h = arith.addi %g, %n : tensor<6x40xi8>
  %z = arith.bitcast %h : tensor<6x40xi8> to tensor<6x40x{0}>"""


def on_two(body: str, element: str, constants: str = "") -> str:
    kind = f"tensor<6x40x{element}>"
    head = f"func.func @f(%x: {kind}, %y: {kind}) -> {kind} {{{constants}"
    return f"{head}{body}\n  return %z : {kind}\n}}\n"


@pytest.mark.parametrize(
    "program",
    [
        *(
            on_two(
                OPS.format(op, extension),
                "i8",
                """
  %k = arith.constant dense<3> : tensor<6x40xi8>
  %n = arith.constant dense<-77> : tensor<6x40xi32>""",
            )
            for op, extension in (("add", "extsi"), ("mul", "extui"))
        ),
        *(
            on_two(CODES.format(each), each, "\n  %n = arith.constant dense<1> : tensor<6x40xi8>")
            for each in ("f8E4M3FN", "f8E5M2")
        ),
    ],
    ids=("sums", "products", "e4m3", "e5m2"),
)
def test_all_bytes(program: str) -> None:
    """Elementwise, so the inputs are all codes, but where fptosi may be out of range."""
    strict = "fptosi" not in program
    report = tcir.validate(program, "simt-elementwise", target="sm_90", strict=strict)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def _attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(1, 2) * 0.17677669
    return np.asarray(scipy.special.softmax(scores, 2) @ v)


def _block(x: Array, w: Array, b: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    h = (_norm(x, 1) * w + b) @ w1.T + b1
    return x + (h / 2 * (1 + ERF(h / np.sqrt(2)))) @ w2.T + b2


def _convolution(x: Array, k: Array, w: Array, b: Array, mean: Array, variance: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    h = _batch(np.einsum("nchwrs,kcrs->nkhw", seen, k), w, b, mean, variance)
    return windows(np.maximum(h, 0), -np.inf).max((4, 5))


NETWORKS: dict[str, tuple[str, list[tuple[int, ...]], Any, Any, float]] = {
    "attention": ("gemm", [(2, 40, 32), (2, 48, 32), (2, 48, 32)], _attention, F16, 2.0**-9),
    "block": ("gemm", [(40, 32), (32,), (32,), (64, 32), (64,), (32, 64), (32,)], _block, F32,
              2.0**-6),
    "conv_bn": ("conv", [(1, 8, 9, 9), (16, 8, 3, 3), *[(16,)] * 4], _convolution, F16, 2.0**-7),
}  # fmt: skip
"""Layers before and behind products: pipeline, shapes, the network, type, and room (tf32, f16)."""


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_at_every_level(name: str) -> None:
    report = tcir.validate(text(name), NETWORKS[name][0], orders=1, strict=True)
    assert report.ok, str(report)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_against_numpy(name: str) -> None:
    pipeline, shapes, oracle, dtype, room = NETWORKS[name]
    generator = np.random.default_rng(0)
    inputs = [(generator.standard_normal(shape) / 2).astype(dtype) for shape in shapes]
    inputs = [
        np.abs(a) + dtype(0.5) if name == "conv_bn" and n > 1 else a for n, a in enumerate(inputs)
    ]
    want = oracle(*(each.astype(np.float64) for each in inputs))
    out = np.zeros(want.shape, dtype)
    tcir.compile(text(name), pipeline)(*inputs, out)
    assert (np.abs(out - want) <= room * (1 + np.abs(want))).all(), np.abs(out - want).max()
    assert np.abs(want).max() > 4 * room


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        pytest.param("rms_norm", change_text("rsqrt.approx", "sqrt.approx"), id="root"),
        pytest.param("gelu_tanh", change_text(r"-0.333333343", "0.333333343"), id="series of tanh"),
        pytest.param("log_softmax", change_text("0.693147182", "0.693100000"), id="ln(2)"),
        pytest.param("sum_all", change_text("arith.addf", "arith.subf"), id="a scalar"),
        pytest.param("relu_i8", change_text(r"arith.shrsi", "arith.shrui"), id="zero-extended"),
        pytest.param("to_f8", change_text("e4m3x2.f32", "e5m2x2.f32"), id="the other fp8"),
        pytest.param("argmax", change_text("cmpf oeq", "cmpf ole"), id="the first one"),
        pytest.param(
            "max_pool_indices", change_text("arith.cmpi eq", "arith.cmpi ne"), id="not the first"
        ),
    ],
)
def test_breaks(name: str, edit: Edit) -> None:
    """Caught behind the pass that makes the kernels."""
    at = "convert-to-simt"
    caught = run_broken(text(name), tcir.named_pipeline("simt-elementwise"), at, edit)
    assert caught and (caught.at, caught.by) == (at, "difference"), caught
