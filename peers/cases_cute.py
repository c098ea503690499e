"""Launches and numpy oracles of the CuTe DSL kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.case import Launch, case, product, rng, small
from tcir.machine import TensorMap


@case("cute")
def axpy(meta: Any) -> Launch:
    r = rng()
    x, y = small(r, (1000,), "f4"), small(r, (1000,), "f4")
    return Launch((8,), [x, y, np.float32(2.5)], [(y, 2.5 * x + y, 0)])


@case("cute")
def vectorised_squash(meta: Any) -> Launch:
    x = np.linspace(-4, 4, 1024).astype("f2")
    y = np.zeros_like(x)
    v = x.astype("f8")
    return Launch((1,), [x, y], [(y, np.tanh(v) / np.sqrt(v * v + 1), 1e-3)])


@case("cute")
def warp_softmax(meta: Any) -> Launch:
    x = rng().standard_normal((4, 256)).astype("f4")
    y = np.zeros_like(x)
    e = np.exp(x.astype("f8"))
    return Launch((4,), [x, y], [(y, e / e.sum(1, keepdims=True), 1e-6)])


@case("cute")
def shared_transpose(meta: Any) -> Launch:
    x = rng().standard_normal((64, 96)).astype("f4")
    y = np.zeros((96, 64), "f4")
    return Launch((3, 2), [x, y], [(y, x.T.copy(), 0)], dynamic_smem=4 * 33 * 32)


@case("cute")
def gemv(meta: Any) -> Launch:
    r = rng()
    w, x, y = small(r, (64, 256), "f2"), small(r, (256,), "f2"), np.zeros(64, "f4")
    return Launch((16,), [w, x, y], [(y, product(w, x), 0)])


def _map(array: np.ndarray, box: tuple[int, int]) -> TensorMap:
    columns = array.shape[1]
    return TensorMap.tiled(
        array,
        dtype="f16",
        dims=[columns, array.shape[0]],
        strides_bytes=[2 * columns],
        box=[box[1], box[0]],
        swizzle="128B",
    )


@case("cute")
def matmul_f16(meta: Any) -> Launch:
    """First parameter: the tiled mma's state (accumulate, negate A, negate B, lane mask): zeros."""
    r = rng()
    a, b, c = small(r, (128, 256), "f2"), small(r, (256, 256), "f2"), np.zeros((128, 256), "f2")
    args = [bytes(32), _map(a, (128, 64)), _map(b, (128, 64)), c]
    return Launch((1, 2), args, [(c, product(a, b.T), 0)], dynamic_smem=128 + 4 * 128 * 128)


@case("cute")
def async_reversal(meta: Any) -> Launch:
    x, y = small(rng(), (512,), "f4"), np.zeros(512, "f4")
    return Launch((1,), [x, y], [(y, x[::-1].copy(), 0)], dynamic_smem=2048)


@case("cute")
def matmul_mma_sync(meta: Any) -> Launch:
    r = rng()
    a, b, c = small(r, (64, 64), "f2"), small(r, (64, 64), "f2"), np.zeros((64, 64), "f4")
    return Launch((1,), [a, b, c], [(c, product(a, b.T), 0)], dynamic_smem=2 * 64 * 72 * 2)
