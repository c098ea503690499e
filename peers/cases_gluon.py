"""Launches and numpy oracles of the Gluon kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.case import Launch, case, product, rng, small
from peers.cases_triton import described, i32, launch
from tcir.machine import TensorMap


@case("gluon")
def square(meta: Any) -> Launch:
    x, out = small(rng(), (1000,), "f4"), np.zeros(1000, "f4")
    return launch((2,), [x, out, i32(1000)], (out, x * x, 0))


@case("gluon")
def pipelined_copy(meta: Any) -> Launch:
    x, out = small(rng(), (2000,), "f4"), np.zeros(2000, "f4")
    return launch((1,), [x, out, i32(2000)], (out, x + 1, 0))


def _matmul() -> Launch:
    r, m, n, k = rng(), 128, 128, 320
    a, b, c = small(r, (m, k), "f2"), small(r, (n, k), "f2"), np.zeros((m, n), "f4")
    args = [*described(a, (128, 64)), *described(b, (64, 64)), c, i32(n), i32(k)]
    return launch((1, 2), args, (c, product(a, b.T), 0))


@case("gluon")
def matmul(meta: Any) -> Launch:
    return _matmul()


@case("gluon")
def matmul_specialised(meta: Any) -> Launch:
    return _matmul()


@case("gluon")
def tma_accumulate(meta: Any) -> Launch:
    x, out = small(rng(), (96, 32), "f4"), np.zeros((32, 32), "f4")

    def tile(array: np.ndarray) -> list[Any]:
        rows = array.shape[0]
        tensor_map = TensorMap.tiled(
            array, dtype="f32", dims=[32, rows], strides_bytes=[128], box=[32, 32], swizzle="128B"
        )
        return [tensor_map, i32(rows), i32(32), np.int64(32), np.int64(1)]

    want = x.reshape(3, 32, 32).sum(axis=0)
    return launch((3,), [*tile(x), *tile(out)], (out, want, 0))
