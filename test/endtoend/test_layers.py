"""Layers as PyTorch's importer writes them (`layers/*.mlir`), through all levels and against numpy.

Weights are arguments; everything else is as the importer has it: casts of operands to f32, weights
transposed, inputs reshaped, channels first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir, passmanager

from .breaking import Edit, run_broken, set_attribute

Array = np.ndarray[Any, Any]

LAYERS = Path(__file__).parent / "layers"
PRODUCTS = (
    "linear", "linear_1d", "linear_3d", "linear_3d_relu_f32", "linear_4d", "linear_nobias",
    "matmul_add", "matmul_out_t", "matmul_relu", "matmul_scale", "matmul_silu", "matmul_t",
    "matvec", "vecmat", "dot", "bmm", "bmm_qk", "einsum", "heads",
)  # fmt: skip
CONVS = (
    "conv", "conv_1x1", "conv_stride2_nobias", "conv_bias_relu", "conv_nhwc", "conv_f32",
    "conv_residual", "conv_transposed",
)  # fmt: skip
WITHIN = ("matmul_silu",)
"""Layers of functions whose error is bounded, not zero."""
WARP = ("matvec", "vecmat", "dot", "bmm_qk", "heads", "matmul_out_t")


def text(name: str) -> str:
    """The layer as imported."""
    return (LAYERS / f"{name}.mlir").read_text()


def cases(names: tuple[str, ...], pipeline: str) -> list[Any]:
    """Layers of a pipeline."""
    return [pytest.param(n, pipeline, id=f"{pipeline}-{n}") for n in names]


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [*cases(PRODUCTS, "gemm"), *cases(WARP, "matmul-warp"), *cases(CONVS, "conv")],
)
def test_every_level(name: str, pipeline: str) -> None:
    report = tcir.validate(text(name), pipeline, orders=1, strict=True)
    assert report.ok, str(report)
    within = {"within bound"} if name in WITHIN else set()
    assert {line.verdict for line in report.passes} <= {"reference", "equal"} | within, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)


def whole(shape: tuple[int, ...], seed: int, dtype: Any = np.float16) -> Array:
    """Small whole numbers: every sum is exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def convolution(x: Array, w: Array, stride: int, pad: int) -> Array:
    """NCHW, fchw."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwrs,kcrs->nkhw", windows[:, :, ::stride, ::stride], w.astype(np.float64))


def biased(x: Array, w: Array, bias: Array) -> Array:
    """A convolution of one more pixel around."""
    return convolution(x, w, 1, 1) + bias[:, None, None]


def _heads(q: Array, k: Array) -> Array:
    return np.einsum("bihd,bjhd->bhij", q.reshape(2, 20, 3, 16), k.reshape(2, 24, 3, 16))


CONV = [(1, 8, 9, 9), (16, 8, 3, 3)]
ORACLES: dict[str, tuple[list[tuple[int, ...]], Any]] = {
    "linear": ([(40, 16), (24, 16), (24,)], lambda x, w, b: x @ w.T + b),
    "linear_4d": ([(2, 3, 8, 16), (24, 16), (24,)], lambda x, w, b: x @ w.T + b),
    "linear_1d": ([(16,), (24, 16), (24,)], lambda x, w, b: x @ w.T + b),
    "matvec": ([(40, 16), (16,)], lambda a, b: a @ b),
    "vecmat": ([(16,), (16, 24)], lambda a, b: a @ b),
    "dot": ([(16,), (16,)], lambda a, b: np.asarray(a @ b)),
    "matmul_out_t": ([(40, 16), (16, 24)], lambda a, b: (a @ b).T),
    "bmm_qk": ([(2, 3, 20, 16), (2, 3, 24, 16)], lambda a, b: a @ b.swapaxes(-1, -2)),
    "heads": ([(2, 20, 48), (2, 24, 48)], _heads),
    "einsum": ([(2, 20, 16), (24, 16)], lambda a, b: a @ b.T),
    "conv": ([(1, 8, 9, 9), (16, 8, 3, 3)], lambda x, w: convolution(x, w, 1, 1)),
    "conv_1x1": ([(1, 8, 9, 9), (16, 8, 1, 1)], lambda x, w: convolution(x, w, 1, 0)),
    "conv_stride2_nobias": ([(2, 8, 9, 9), (16, 8, 3, 3)], lambda x, w: convolution(x, w, 2, 1)),
    "conv_bias_relu": ([*CONV, (16,)], lambda x, w, b: np.maximum(biased(x, w, b), 0)),
    "conv_residual": (
        [CONV[0], (1, 16, 9, 9), CONV[1], (16,)],
        lambda x, r, w, b: np.maximum(biased(x, w, b) + r, 0),
    ),
    "conv_nhwc": (
        [(1, 9, 9, 8), CONV[1], (16,)],
        lambda x, w, b: biased(x.transpose(0, 3, 1, 2), w, b).transpose(0, 2, 3, 1),
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_against_numpy(name: str) -> None:
    shapes, oracle = ORACLES[name]
    inputs = [whole(shape, seed) for seed, shape in enumerate(shapes)]
    want = oracle(*(each.astype(np.float64) for each in inputs)).astype(np.float16)
    out = np.zeros(want.shape, np.float16)
    report = tcir.compile(text(name), "conv" if name in CONVS else "gemm")(*inputs, out)
    assert not report.findings
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("conv", [8 * 81, 16 * 8 * 9, 16 * 81]),  # input, filter, result
        ("conv_1x1", [8 * 81, 16 * 81]),  # a filter of one tap has its channels last as it is
        ("heads", [2 * 20 * 48, 2 * 24 * 48]),
        ("einsum", []),
        ("dot", []),
    ],
)
def test_bytes_of_repacking(name: str, copied: list[int]) -> None:
    """Each repacked tensor is read and written once, by loads and stores of 2 bytes; else none."""
    shapes, oracle = ORACLES[name]
    inputs = [whole(shape, seed) for seed, shape in enumerate(shapes)]
    out = np.zeros(oracle(*inputs).shape, np.float16)
    kernel = tcir.compile(text(name), "conv" if name in CONVS else "gemm")
    assert len(kernel.launches.launches) == 1 + len(copied)
    counters = kernel(*inputs, out).counters
    assert counters.get("global_load", 0) == 2 * sum(copied)
    assert counters["global_store"] == 2 * (sum(copied) + out.size)


def test_only_the_filter_is_repacked_between_permutes() -> None:
    kernel = tcir.compile(text("conv_nhwc"), "conv")
    assert [each.title for each in kernel.launches.launches] == ["conv_nhwc_repack0", "conv_nhwc"]


MATMULS = {
    "matmul": "linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x24xf16>)",
    "batch_matmul": "linalg.batch_matmul ins(%a, %b : tensor<2x40x16xf16>, tensor<2x16x24xf16>)",
    "matvec": "linalg.matvec ins(%a, %b : tensor<40x16xf16>, tensor<16xf16>)",
    "vecmat": "linalg.vecmat ins(%a, %b : tensor<16xf16>, tensor<16x24xf16>)",
    "dot": "linalg.dot ins(%a, %b : tensor<16xf16>, tensor<16xf16>)",
    "conv_2d_nhwc_hwcf": "linalg.conv_2d_nhwc_hwcf "
    "ins(%a, %b : tensor<1x9x9x8xf16>, tensor<3x3x8x16xf16>)",
    "conv_2d_nhwc_fhwc": "linalg.conv_2d_nhwc_fhwc "
    "ins(%a, %b : tensor<1x9x9x8xf16>, tensor<16x3x3x8xf16>)",
    "conv_2d_nchw_fchw": "linalg.conv_2d_nchw_fchw "
    "ins(%a, %b : tensor<1x8x9x9xf16>, tensor<16x8x3x3xf16>)",
}
RESULTS = {
    "matmul": "40x24x", "batch_matmul": "2x40x24x", "matvec": "40x", "vecmat": "24x", "dot": "",
    "conv_2d_nhwc_hwcf": "1x7x7x16x", "conv_2d_nhwc_fhwc": "1x7x7x16x",
    "conv_2d_nchw_fchw": "1x16x7x7x",
}  # fmt: skip


def named(op: str) -> str:
    """A function of one named op that starts from zeros."""
    kinds = MATMULS[op].partition(" : ")[2].rstrip(")").split(", ")
    out = f"tensor<{RESULTS[op]}f32>"
    return f"""
func.func @f(%a: {kinds[0]}, %b: {kinds[1]}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {out}
  %i = linalg.fill ins(%zero : f32) outs(%e : {out}) -> {out}
  %c = {MATMULS[op]} outs(%i : {out}) -> {out}
  return %c : {out}
}}
"""


@pytest.mark.parametrize("op", MATMULS)
@pytest.mark.parametrize(
    "before",
    ["linalg-generalize-named-ops,linalg-fuse-elementwise-ops", "linalg-generalize-named-ops"],
)
def test_generalised_forms_are_raised_alike(op: str, before: str) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(named(op))
        passmanager.PassManager.parse(f"builtin.module(func.func({before}))").run(module.operation)
        generalised = str(module)
    assert "linalg.generic" in generalised and "linalg.fill" not in generalised
    kernels = [
        tcir.compile(source, "conv" if "conv" in op else "gemm")
        for source in (named(op), generalised)
    ]
    plain = [re.sub(r"\s*\.(loc|file)\s.*", "", kernel.ptx) for kernel in kernels]
    assert plain[0] == plain[1]


@pytest.mark.parametrize(
    ("name", "at", "edit"),
    [
        pytest.param(
            "conv", "fold-layouts",
            set_attribute("tc.repack", "permutation", "array<i64: 0, 3, 2, 1>"),
            id="result repacked with rows and columns exchanged",
        ),
        pytest.param(
            "conv", "raise-to-tc",
            set_attribute("tc.repack", "permutation", "array<i64: 0, 3, 2, 1>", 0),
            id="input repacked with rows and columns exchanged",
        ),
        pytest.param(
            "conv", "raise-to-tc",
            set_attribute("tc.repack", "permutation", "array<i64: 0, 3, 2, 1>", 1),
            id="taps of the filter exchanged",
        ),
        pytest.param(
            "conv_stride2_nobias", "raise-to-tc",
            set_attribute("tc.conv2d", "pads", "array<i64: 2, 0, 1, 1>"), id="padding a row lower",
        ),
    ],
)  # fmt: skip
def test_breaks(name: str, at: str, edit: Edit) -> None:
    pipeline = tcir.named_pipeline("conv" if name in CONVS else "gemm")
    caught = run_broken(text(name), pipeline, at, edit)
    assert caught and (caught.at, caught.by) == (at, "difference"), caught
