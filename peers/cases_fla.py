"""Numpy oracles of flash-linear-attention; launches and inputs are recorded ones.

Buffers are numbered in the order of the kernel's arguments.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, rng, small
from peers.cases_liger import rms, silu, softmax
from peers.recorded import Recorded

F16, BF16 = np.float16, ml_dtypes.bfloat16


def _conv(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """x [batch, time, channels], w [channels, width]: causal, one filter a channel."""
    x, w = x.astype("f8"), w.astype("f8")
    width = w.shape[1]
    padded = np.pad(x, ((0, 0), (width - 1, 0), (0, 0)))
    return np.asarray(sum(padded[:, n : n + x.shape[1]] * w[:, n] for n in range(width)))


@case("fla")
def gluon_conv1d(meta: Any) -> Launch:
    run, shape = Recorded(meta), (2, 70, 64)
    x, y, w, b = (run.array(n, BF16, s) for n, s in enumerate((shape, shape, (64, 4), (64,))))
    return run.launch((y, silu(_conv(x, w) + b.astype("f8")), 0.05))


@case("fla")
def gluon_conv1d_residual(meta: Any) -> Launch:
    run, shape = Recorded(meta), (1, 64, 32)
    x, y, w, r = (run.array(n, "f4", s) for n, s in enumerate((shape, shape, (32, 3), shape)))
    return run.launch((y, _conv(x, w) + r, 0))


@case("fla")
def gluon_conv1d_dw(meta: Any) -> Launch:
    r, run = rng(), Recorded(meta)
    w = run.fill(5, small(r, (4, 32, 4), "f4"))
    b = run.fill(6, small(r, (4, 32), "f4"))
    dw, db = run.array(7, BF16, (32, 4)), run.array(8, BF16, (32,))
    return run.launch((dw, w.sum(0), 0), (db, b.sum(0), 0))


@case("fla")
def gluon_cross_entropy(meta: Any) -> Launch:
    run = Recorded(meta)
    x, target = run.array(0, "f4", (4, 1000)), run.array(1, "i8", (4,))
    loss, lse = run.array(2, "f4", (4,)), run.array(4, "f4", (4,))
    total = np.log(np.exp(x.astype("f8")).sum(-1))
    want = np.where(target >= 0, total - x[np.arange(4), target], 0)
    return run.launch((loss, want, 1e-5), (lse, total, 1e-5))


@case("fla")
def gluon_cross_entropy_softcap(meta: Any) -> Launch:
    """Three partial results of five rows."""
    r, run = rng(), Recorded(meta)
    target = run.array(1, "i8", (5,))
    partial = run.fill(2, r.standard_normal((3, 5)).astype("f4"))
    sums = run.fill(4, r.standard_normal((3, 5)).astype("f4"))
    loss, lse = run.array(5, "f4", (5,)), run.array(6, "f4", (5,))
    total = np.log(np.exp(sums.astype("f8")).sum(0))
    want = np.where(target >= 0, partial.sum(0, dtype="f8") + total, 0)
    return run.launch((loss, want, 1e-5), (lse, total, 1e-5))


@case("fla")
def gluon_cross_entropy_backward(meta: Any) -> Launch:
    """Labels smoothed by 0.1."""
    run = Recorded(meta)
    x, target = run.array(0, "f4", (4, 1000)), run.array(1, "i8", (4,))
    dloss, dx = run.array(3, "f4", (4, 1)), run.array(4, "f4", (4, 1000))
    p = softmax(x.astype("f8")) - 0.1 / 1000
    p[np.arange(4), target] -= 0.9
    return run.launch((dx, p * dloss * (target >= 0)[:, None], 1e-5))


def _sinkhorn(x: np.ndarray, steps: int) -> list[np.ndarray]:
    """What the rows, then the columns, are normalised to, step by step."""
    p, seen = np.exp(x.astype("f8")), []
    for _ in range(steps):
        for axis in (1, 2):
            p = p / p.sum(axis, keepdims=True)
            seen.append(p)
    return seen


@case("fla")
def gluon_sinkhorn(meta: Any) -> Launch:
    run = Recorded(meta)
    x, y = (run.array(n, "f4", (6, 4, 4)) for n in range(2))
    return run.launch((y, _sinkhorn(x, 5)[-1], 1e-6))


@case("fla")
def gluon_sinkhorn_backward(meta: Any) -> Launch:
    run = Recorded(meta)
    x, dy, dx = (run.array(n, "f4", (4, 8, 8)) for n in range(3))
    seen = _sinkhorn(x, 3)
    gradient = dy * seen[-1]
    for axis, p in zip((2, 1) * 3, reversed(seen), strict=True):
        gradient = gradient - p * gradient.sum(axis, keepdims=True)
    return run.launch((dx, gradient, 1e-6))


def _states(k: np.ndarray, v: np.ndarray, decay: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """k, v [time, 64], decay [time] (base-2 logarithms, sums within a chunk)."""
    state, states = np.zeros((64, 64)), []
    for at in range(0, len(k), 64):
        states.append(state)
        g = decay[at : at + 64]
        keys = k[at : at + 64].astype("f8") * np.exp2(g[-1] - g)[:, None]
        state = np.exp2(g[-1]) * state + keys.T @ v[at : at + 64].astype("f8")
    return states, state


@case("fla")
def chunk_h(meta: Any) -> Launch:
    run = Recorded(meta)
    k, v = (run.array(n, BF16, (192, 64)) for n in range(2))
    states, last = _states(k, v, np.zeros(192))
    h, ht = run.array(2, BF16, (3, 64, 64)), run.array(3, "f4", (64, 64))
    return run.launch((h, np.array(states).astype(BF16), 0), (ht, last, 0))


@case("fla")
def chunk_h_gated(meta: Any) -> Launch:
    """Two heads; 0.5: half a unit of bfloat16 at 64 and more."""
    run = Recorded(meta)
    k, v = (run.array(n, BF16, (128, 2, 64)) for n in range(2))
    gate, h = run.array(3, "f4", (128, 2)), run.array(2, BF16, (2, 2, 64, 64))
    heads = [_states(k[:, n], v[:, n], gate[:, n].astype("f8"))[0] for n in range(2)]
    return run.launch((h, np.array(heads).swapaxes(0, 1), 0.5))


@case("fla")
def chunk_o(meta: Any) -> Launch:
    run = Recorded(meta)
    q, k, v = (run.array(n, BF16, (2, 64, 64)).astype("f8") for n in range(3))
    h, o = run.array(3, BF16, (2, 64, 64)).astype("f8"), run.array(4, BF16, (2, 64, 64))
    want = q @ h + np.tril(q @ k.swapaxes(1, 2)) @ v
    return run.launch((o, want.astype(BF16), 0))


@case("fla")
def chunk_kkt(meta: Any) -> Launch:
    run = Recorded(meta)
    k = run.array(0, BF16, (2, 64, 64)).astype("f8")
    beta, a = run.array(1, "f4", (2, 64, 1)), run.array(2, "f4", (2, 64, 64))
    return run.launch((a, beta * np.tril(k @ k.swapaxes(1, 2), -1), 0))


def _inverse(meta: Any, blocks: int, size: int, tolerance: float) -> Launch:
    run = Recorded(meta)
    a, inverse = (run.array(n, "f4", (blocks, size, size)) for n in range(2))
    want = np.linalg.inv(np.eye(size) + np.tril(a.astype("f8"), -1))
    return run.launch((inverse, want, tolerance))


@case("fla")
def inverse_64(meta: Any) -> Launch:
    return _inverse(meta, 1, 64, 0.02)


@case("fla")
def inverse_16(meta: Any) -> Launch:
    return _inverse(meta, 2, 16, 1e-4)


@case("fla")
def cumsum(meta: Any) -> Launch:
    run = Recorded(meta)
    x, y = (run.array(n, "f4", (2, 64, 2)) for n in range(2))
    return run.launch((y, x.cumsum(1), 0))


@case("fla")
def cumsum_vector(meta: Any) -> Launch:
    """From the end of each chunk; the last one has 36 rows."""
    run = Recorded(meta)
    x, y = (run.array(n, "f4", (100, 64)) for n in range(2))
    want = np.concatenate([part[::-1].cumsum(0)[::-1] for part in (x[:64], x[64:])])
    return run.launch((y, want, 0))


@case("fla")
def l2norm_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    x, y = (run.array(n, BF16, (8, 64)) for n in range(2))
    x8 = x.astype("f8")
    return run.launch((y, x8 / np.sqrt((x8 * x8).sum(-1, keepdims=True) + 1e-6), 4e-3))


@case("fla")
def layer_norm_forward(meta: Any) -> Launch:
    run = Recorded(meta)
    x, y = (run.array(n, F16, (8, 128)) for n in range(2))
    w, b = (run.array(n, "f4", (128,)) for n in (2, 3))
    middle = x.astype("f8") - x.mean(-1, keepdims=True, dtype="f8")
    return run.launch((y, middle * rms(middle, 1e-5) * w + b, 8e-3))
