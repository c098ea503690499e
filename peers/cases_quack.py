"""Numpy oracles of QuACK; launches and inputs are recorded ones.

Buffers are the tensors of `quack_kernels.py` in order.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case
from peers.recorded import Recorded

F16, BF16 = np.float16, ml_dtypes.bfloat16


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


for _name, _shape, _dtype, _tolerance in (
    ("softmax_f32", (8, 512), "f4", 1e-6),
    ("softmax_bf16", (4, 1000), BF16, 1e-3),
    ("softmax_wide", (2, 4096), F16, 1e-5),
):

    def _softmax(
        meta: Any, shape: Any = _shape, dtype: Any = _dtype, tolerance: float = _tolerance
    ) -> Launch:
        run = Recorded(meta)
        x, y = (run.array(n, dtype, shape) for n in range(2))
        return run.launch((y, softmax(x.astype("f8")), tolerance))

    case("quack", _name)(_softmax)


@case("quack")
def softmax_backward(meta: Any) -> Launch:
    run = Recorded(meta)
    dy, y, dx = (run.array(n, "f4", (4, 512)) for n in range(3))
    want = y * (dy - (dy * y.astype("f8")).sum(-1, keepdims=True))
    return run.launch((dx, want, 1e-6))


@case("quack")
def rms_norm_bf16(meta: Any) -> Launch:
    run, shape = Recorded(meta), (4, 768)
    x, w, y = run.array(0, BF16, shape), run.array(1, "f4", shape[1:]), run.array(2, BF16, shape)
    x8 = x.astype("f8")
    return run.launch((y, x8 * rms(x8, 1e-6) * w, 0.05))


@case("quack")
def rms_norm_residual(meta: Any) -> Launch:
    run, shape = Recorded(meta), (4, 512)
    x, residual, y, total = (run.array(n, "f4", shape) for n in (0, 3, 4, 5))
    w, b = (run.array(n, "f4", shape[1:]) for n in (1, 2))
    want = x.astype("f8") + residual
    return run.launch((y, want * rms(want, 1e-6) * w + b, 1e-5), (total, want, 1e-6))


@case("quack")
def rms_norm_gemma(meta: Any) -> Launch:
    run, shape = Recorded(meta), (2, 2048)
    x, w, y = run.array(0, F16, shape), run.array(1, "f4", shape[1:]), run.array(2, F16, shape)
    x8 = x.astype("f8")
    return run.launch((y, x8 * rms(x8, 1e-6) * (1 + w), 0.01))


@case("quack")
def layer_norm(meta: Any) -> Launch:
    run, shape = Recorded(meta), (4, 512)
    x, y = run.array(0, "f4", shape), run.array(3, "f4", shape)
    w, b = (run.array(n, "f4", shape[1:]) for n in (1, 2))
    middle = x - x.mean(-1, keepdims=True, dtype="f8")
    return run.launch((y, middle * rms(middle, 1e-6) * w + b, 1e-5))


def _cross_entropy(meta: Any, dtype: Any, tolerance: float) -> Launch:
    run = Recorded(meta)
    x, target = run.array(0, dtype, (4, 1000)), run.array(1, "i8", (4,))
    loss, lse = (run.array(n, "f4", (4,)) for n in (2, 3))
    x8, rows, counts = x.astype("f8"), np.arange(4), target >= 0
    total = np.log(np.exp(x8).sum(-1))
    want = [(loss, np.where(counts, total - x8[rows, target], 0), 1e-5), (lse, total, 1e-5)]
    if tolerance:
        p = softmax(x8)
        p[rows, target] -= 1
        want.append((run.array(4, dtype, (4, 1000)), p * counts[:, None], tolerance))
    return run.launch(*want)


@case("quack")
def cross_entropy(meta: Any) -> Launch:
    return _cross_entropy(meta, "f4", 0)


@case("quack")
def cross_entropy_gradient(meta: Any) -> Launch:
    return _cross_entropy(meta, BF16, 4e-3)


@case("quack")
def top_k(meta: Any) -> Launch:
    """The index travels in the low bits of a value: 8 bits of the fraction are lost."""
    run = Recorded(meta)
    x, values = run.array(0, "f4", (4, 256)), run.array(1, "f4", (4, 16))
    want = -np.sort(-x, axis=1)[:, :16]
    indices = np.argsort(-x, axis=1)[:, :16]
    return run.launch((values, want, 2e-4), (run.array(2, "i4", (4, 16)), indices, 0))


@case("quack")
def top_k_softmax(meta: Any) -> Launch:
    run = Recorded(meta)
    x, values = run.array(0, BF16, (4, 128)), run.array(1, BF16, (4, 8))
    want = softmax(-np.sort(-x.astype("f8"), axis=1)[:, :8])
    return run.launch((values, want, 2e-3))
