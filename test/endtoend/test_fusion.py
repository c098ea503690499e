"""Each fused epilogue beside the same layer unfused: the product, and then the elementwise part.

The same bits; bytes of global memory are counted: the sums are neither written nor read again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.interp import Outcome

from .block_scaled_oracle import inputs_of
from .block_scaled_text import BlockScaled
from .epilogue_text import KEEP, SILU_OF_SUMS, TRUNCATE, gelu_of_sums
from .fusion_text import Behind
from .linalg_text import Conv
from .oracle import integers
from .product_text import program
from .quantise_text import quantised

Arrays = list[np.ndarray[Any, Any]]

PARTS = {
    "bias": Behind("%t = arith.addf %s, %bias : f32" + KEEP, {"bias": ("f32", "columns")}),
    "bias of rows": Behind("%t = arith.addf %s, %bias : f32" + KEEP, {"bias": ("f32", "rows")}),
    "residual": Behind(
        "%wide = arith.extf %skip : f16 to f32\n %t = arith.addf %s, %wide : f32" + KEEP,
        {"skip": ("f16", "all")},
    ),
    "relu": Behind("%low = arith.constant 0.0 : f32\n %t = arith.maximumf %s, %low : f32" + KEEP),
    "gelu": Behind(gelu_of_sums("erf").replace("%x", "%arg") + TRUNCATE, out="f16"),
    "silu": Behind(SILU_OF_SUMS + KEEP),
    "scale": Behind("%t = arith.mulf %s, %by : f32" + KEEP, {"by": ("f32", "none")}),
    "cast": Behind("%h = arith.truncf %s : f32 to bf16\n linalg.yield %h : bf16", out="bf16"),
}

M, N, K = 72, 40, 64
CONV = Conv(n=2, h=5, w=6, c=16, k=24, r=3, s=3, pads=(1, 1, 1, 1))
SCALED = BlockScaled(m=130, k=512, n=2)
SUMS = {"product": [M, N], "convolution": list(CONV.shapes[2]), "scaled": [SCALED.m, SCALED.n]}


@cache
def _alone(kind: str) -> tuple[str, Arrays]:
    """A layer whose result is its sums, and inputs."""
    if kind == "convolution":
        x, w, _ = CONV.shapes
        return CONV.text(), [integers(x, "f16", 1), integers(w, "f16", 2)]
    if kind == "scaled":
        empty = f"tensor<{SCALED.m}x{SCALED.n}xf32>"
        text = SCALED.linalg().replace(f", %init: {empty}", "")
        text = text.replace("%zero =", f"%init = tensor.empty() : {empty}\n%zero =", 1)
        return text, list(inputs_of(SCALED, seed=4).values())
    text = program(M, N, K, "f16")
    empty = f"tensor<{M}x{N}xf32>"
    text = text.replace(f", %out: {empty}", "")
    text = text.replace("%zero =", f"%out = tensor.empty() : {empty}\n  %zero =", 1)
    return text, [integers((M, K), "f16", 1), integers((K, N), "f16", 2)]


PIPELINES = {
    "gemm": "product",
    "gemm{store=tma}": "product",
    "matmul-warp": "product",
    "conv-implicit-gemm": "convolution",
    "conv-smem-offset": "convolution",
    "conv-shift-reuse": "convolution",
    "gemv-padded-n{schedule=single}": "scaled",
    "gemv-padded-n{schedule=split-k splits=2}": "scaled",
    "gemv-simt": "scaled",
}


@cache
def _run_alone(pipeline: str) -> tuple[np.ndarray[Any, Any], Outcome]:
    text, inputs = _alone(PIPELINES[pipeline])
    sums = np.zeros(SUMS[PIPELINES[pipeline]], np.float32)
    return sums, tcir.compile(text, pipeline)(*inputs, sums)


def _read(outcome: Outcome) -> int:
    """Bytes of global memory, by threads and by TMA, which reads nothing for its zeros."""
    return outcome.counters["global_load"] + outcome.counters["global_to_shared_read"]


def _written(outcome: Outcome) -> int:
    return outcome.counters["global_store"] + outcome.counters["shared_to_global"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "pipeline",
    PIPELINES,
)
def test_fused(pipeline: str, part: str) -> None:
    kind, behind = PIPELINES[pipeline], PARTS[part]
    alone, inputs = _alone(kind)
    shape, draw = SUMS[kind], np.random.default_rng(3)
    dtypes = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
    beside = [
        np.asarray(draw.standard_normal(behind.extents(shape, dims))).astype(dtypes[of])
        for of, dims in behind.inputs.values()
    ]
    sums, first = _run_alone(pipeline)
    want, out = (np.zeros(shape, dtypes[behind.out]) for _ in range(2))
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    second = tcir.compile(behind.after(type_), "simt-elementwise")(sums, *beside, want)
    fused = tcir.compile(behind.fused(alone), pipeline)(*inputs, *beside, out)
    assert out.tobytes() == want.tobytes() and want.any() and not fused.findings
    assert fused.counters["mma"] == first.counters["mma"]
    # The sums are neither written nor read; what stands beside them is read by either.
    assert _written(first) + _written(second) - _written(fused) == sums.nbytes
    assert _read(second) == sums.nbytes + _by_elements(shape, beside)
    more = _read(fused) - _read(first)
    if part in ("bias", "bias of rows", "scale"):  # once or more, by each thread that needs it
        assert more >= beside[0].nbytes
    else:
        assert more == sum(each.nbytes for each in beside)


def _by_elements(shape: list[int], beside: Arrays) -> int:
    """Bytes that one thread for each element reads beside the sums."""
    return sum(prod(shape) * each.itemsize for each in beside)


QUANTISED = {
    "product": program(M, 48, K, "f16"),
    "convolution": replace(CONV, k=48).text(),
    "scaled": replace(SCALED, n=16).linalg(),
}
WIDE = {"product": [M, 48], "convolution": [2, 5, 6, 48], "scaled": [SCALED.m, 16]}


@pytest.mark.parametrize("pipeline", [p for p in PIPELINES if p != "gemm{store=tma}"])
def test_quantised(pipeline: str) -> None:
    """In gemm by the kernel of the product; elsewhere by a launch that reads the stored sums."""
    kind = PIPELINES[pipeline]
    text, shape = QUANTISED[kind], WIDE[kind]
    if kind == "scaled":
        inputs = list(inputs_of(replace(SCALED, n=16), seed=4).values())
    else:
        x, w = ((M, K), (K, 48)) if kind == "product" else replace(CONV, k=48).shapes[:2]
        inputs = [integers(x, "f16", 1), integers(w, "f16", 2)]
    sums = np.zeros(shape, np.float32)
    whole = "gemm{n-tile=64}" if pipeline == "gemm" else pipeline  # both read operands as often
    first = tcir.compile(text, whole)(*inputs, sums)
    of = (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn)
    shapes = shape, [*shape[:-1], shape[-1] // 16]
    want, found = ([np.zeros(s, t) for s, t in zip(shapes, of, strict=True)] for _ in range(2))
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    alone = f"func.func @f(%x: {type_}) -> {type_} {{\n  return %x : {type_}\n}}\n"
    formats = ("f4E2M1FN", "f8E4M3FN")
    second = tcir.compile(quantised(alone, formats), "simt-elementwise")(sums, *want)
    both = tcir.compile(quantised(text, formats), whole)(*inputs, *found)
    for ours, theirs in zip(found, want, strict=True):
        assert ours.tobytes() == theirs.tobytes() and ours.view(np.uint8).any()
    saved = sums.nbytes if pipeline == "gemm" else 0
    assert _written(first) + _written(second) - _written(both) == saved
    assert _read(second) == sums.nbytes and _read(first) + _read(second) - _read(both) == saved
