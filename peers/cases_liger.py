"""Numpy oracles of Liger-Kernel; launches and inputs are recorded ones.

Buffers are numbered in the order of the kernel's arguments.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case
from peers.recorded import Recorded

F16, BF16 = np.float16, ml_dtypes.bfloat16


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _rms_norm(meta: Any, dtype: Any, shape: tuple[int, int], offset: float) -> Launch:
    run = Recorded(meta)
    y, x, w = run.array(0, dtype, shape), run.array(1, dtype, shape), run.array(2, dtype, shape[1:])
    x8 = x.astype("f8")
    scale = rms(x8, 1e-6)
    want = x8 * scale * (offset + w.astype("f8"))
    tolerance = 0.08 if dtype is BF16 else 0.02
    rstd = run.array(3, "f4", (shape[0], 1))
    return run.launch((y, want, tolerance), (rstd, scale, 1e-5))


@case("liger")
def rms_norm_llama(meta: Any) -> Launch:
    return _rms_norm(meta, BF16, (4, 500), 0)


@case("liger")
def rms_norm_gemma(meta: Any) -> Launch:
    return _rms_norm(meta, F16, (3, 256), 1)


@case("liger")
def add_rms_norm(meta: Any) -> Launch:
    run, shape = Recorded(meta), (4, 512)
    y, s, x, r = (run.array(n, "f4", shape) for n in range(4))
    w = run.array(4, "f4", (512,))
    total = x.astype("f8") + r
    return run.launch((y, total * rms(total, 1e-6) * w, 1e-5), (s, total, 1e-6))


@case("liger")
def layer_norm_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    y, x = (run.array(n, "f4", (4, 300)) for n in range(2))
    w, b = (run.array(n, "f4", (300,)) for n in (2, 3))
    middle = x - x.mean(-1, keepdims=True, dtype="f8")
    return run.launch((y, middle * rms(middle, 1e-5) * w + b, 1e-5))


@case("liger")
def group_norm_forward(meta: Any) -> Launch:
    """Three groups of two channels of 100."""
    run = Recorded(meta)
    y, x = (run.array(n, "f4", (2, 3, 200)) for n in range(2))
    channel = (np.arange(200) // 100)[None] + 2 * np.arange(3)[:, None]
    w, b = (run.array(n, "f4", (6,))[channel] for n in (4, 5))
    middle = x - x.mean(-1, keepdims=True, dtype="f8")
    return run.launch((y, middle * rms(middle, 1e-5) * w + b, 1e-5))


@case("liger")
def softmax_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    y, x = (run.array(n, "f4", (4, 500)) for n in range(2))
    return run.launch((y, softmax(x.astype("f8")), 1e-6))


@case("liger")
def swiglu_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    a, b, c = (run.array(n, BF16, (4, 256)) for n in range(3))
    return run.launch((c, silu(a.astype("f8")) * b.astype("f8"), 0.05))


@case("liger")
def swiglu_backward(meta: Any) -> Launch:
    """The gradients take the places of a and b."""
    run = Recorded(meta)
    dc, a, b = (run.array(n, "f4", (3, 200)) for n in range(3))
    x = a.astype("f8")
    s = 1 / (1 + np.exp(-x))
    da = dc * (s + x * s * (1 - s)) * b
    return run.launch((a, da, 1e-5), (b, dc * x * s, 1e-5))


@case("liger")
def geglu_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    a, b, c = (run.array(n, F16, (4, 256)) for n in range(3))
    x = a.astype("f8")
    gelu = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return run.launch((c, gelu * b.astype("f8"), 0.01))


@case("liger")
def cross_entropy_forward(meta: Any) -> Launch:
    """Mean over the three rows that count; the gradient takes the place of the logits."""
    run = Recorded(meta)
    x, target = run.array(0, "f4", (4, 1000)), run.array(1, "i8", (4,))
    loss, p = run.array(2, "f4", (4,)), softmax(x.astype("f8"))
    counts, rows = target >= 0, np.arange(4)
    losses = np.where(counts, -np.log(p[rows, target]) / 3, 0)
    p[rows, target] -= 1
    return run.launch((loss, losses, 1e-5), (x, p / 3 * counts[:, None], 1e-6))


def _rope(meta: Any, key_heads: int) -> Launch:
    """In place."""
    run = Recorded(meta)
    cos, sin = (run.array(n, "f4", (8, 1, 64)).astype("f8") for n in (2, 3))
    want = []
    for index, heads in ((0, 4), (1, key_heads)):
        x = run.array(index, "f4", (8, heads, 64))
        turned = np.concatenate([-x[..., 32:], x[..., :32]], axis=-1)
        want.append((x, x * cos + turned * sin, 1e-5))
    return run.launch(*want)


@case("liger")
def rope_forward(meta: Any) -> Launch:
    return _rope(meta, 2)


@case("liger")
def rope_equal_heads(meta: Any) -> Launch:
    return _rope(meta, 4)


@case("liger")
def relu_squared_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    y, x = (run.array(n, "f4", (4, 300)) for n in range(2))
    return run.launch((y, np.maximum(x, 0) ** 2, 0))


@case("liger")
def dyt_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    x, y = (run.array(n, "f4", (4, 256)) for n in range(2))
    alpha, gamma, beta = run.array(2, "f4", (1,)), *(run.array(n, "f4", (256,)) for n in (3, 4))
    return run.launch((y, gamma * np.tanh(alpha * x.astype("f8")) + beta, 1e-5))


@case("liger")
def kl_div_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    x, y, loss = (run.array(n, "f4", (4, 500)) for n in range(3))
    return run.launch((loss, y * (np.log(y.astype("f8")) - x), 1e-7))


@case("liger")
def tv_distance(meta: Any) -> Launch:
    run = Recorded(meta)
    p, q, loss, grad = (run.array(n, "f4", (4, 500)) for n in range(4))
    want = np.abs(p.astype("f8") - q) / 2
    return run.launch((loss, want, 1e-8), (grad, np.where(p > q, 0.5, -0.5), 0))
