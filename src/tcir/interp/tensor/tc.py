"""Rules of the high-level `tc` ops on tensors, written from their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.interpreter import Array, Interpreter, rule
from tcir.interp.types import dtype_of, integers, shape_of
from tcir.program.memory_image import PACKED_BITS


def _rounded(total: Array, type_: Any) -> Array:
    """f32 accumulation (here: the exact sum, rounded), then one rounding to the result's type."""
    return convert(total.astype(np.float32), dtype_of(type_))


def _choice(op: Any, name: str, allowed: tuple[str, ...]) -> str:
    value: str = ir.StringAttr(op.operation.attributes[name]).value
    if value not in allowed:
        raise IncompleteError(f'{op.operation.name}: expected {name} in {allowed}, got "{value}"')
    return value


@rule("tc.conv2d")
def tc_conv2d(_: Interpreter, op: Any, x: Array, w: Array) -> Sequence[Array]:
    attributes = op.operation.attributes
    (sh, sw), (dh, dw) = integers(attributes["strides"]), integers(attributes["dilations"])
    top, bottom, left, right = integers(attributes["pads"])
    if _choice(op, "filter", ("hwcf", "fhwc")) == "fhwc":
        w = w.transpose(1, 2, 3, 0)
    type_ = op.operation.results[0].type
    wide: Any = np.float64
    if dtype_of(type_) == np.int32:  # sums wrap
        wide = np.int64
        if "unsigned" in attributes:
            x, w = (
                v.view(np.uint8) if plain else v
                for v, plain in zip((x, w), integers(attributes["unsigned"]))
            )
    padded = np.pad(x.astype(wide), ((0, 0), (top, bottom), (left, right), (0, 0)))
    n, p, q, k = shape_of(type_)
    filters = w.astype(wide)
    total = np.zeros((n, p, q, k), wide)
    for r in range(w.shape[0]):
        for s in range(w.shape[1]):
            rows = slice(r * dh, r * dh + (p - 1) * sh + 1, sh)
            columns = slice(s * dw, s * dw + (q - 1) * sw + 1, sw)
            total += padded[:, rows, columns, :] @ filters[r, s]
    return [total.astype(np.int32) if wide is np.int64 else _rounded(total, type_)]


@rule("tc.matmul")
def tc_matmul(_: Interpreter, op: Any, a: Array, b: Array) -> Sequence[Array]:
    if _choice(op, "a_layout", ("mk", "km")) == "km":
        a = a.swapaxes(-1, -2)
    if _choice(op, "b_layout", ("kn", "nk")) == "nk":
        b = b.swapaxes(-1, -2)
    type_ = op.operation.results[0].type
    if dtype_of(type_) == np.int32:  # sums wrap
        return [(a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)]
    return [_rounded(a.astype(np.float64) @ b.astype(np.float64), type_)]


@rule("tc.repack")
def tc_repack(_: Interpreter, op: Any, source: Array) -> Sequence[Array]:
    moved = source.transpose(integers(op.operation.attributes["permutation"]))
    out = np.zeros(shape_of(op.operation.results[0].type), source.dtype)
    out[tuple(map(slice, moved.shape))] = moved
    return [out]


@rule("tc.pack_codes")
def tc_pack_codes(_: Interpreter, op: Any, codes: Array) -> Sequence[Array]:
    dtype = dtype_of(op.operation.results[0].type)
    mask = np.uint8(2 ** PACKED_BITS[dtype] - 1)
    return [(codes.view(np.uint8) & mask).view(dtype)]


@rule("tc.unpack_codes")
def tc_unpack_codes(_: Interpreter, op: Any, packed: Array) -> Sequence[Array]:
    mask = np.uint8(2 ** PACKED_BITS[packed.dtype] - 1)
    return [(packed.view(np.uint8) & mask).view(np.int8)]
