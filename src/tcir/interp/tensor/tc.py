"""Rules of the high-level `tc` ops on tensors, written from the definitions of these ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers, string, unsigned_operands
from tcir.dialect.ops.highlevel import conv_groups, k_part, out_layout
from tcir.dialect.ops.repack import zeros_before
from tcir.errors import IncompleteError
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.grouped import in_parts, written
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of, shape_of
from tcir.program.memory_image import PACKED_BITS


def _rounded(total: Array, type_: ir.Type) -> Array:
    """Rounds an exact sum to f32, as accumulation does, then once to the result's type."""
    return convert(total.astype(np.float32), dtype_of(type_))


def _choice(op: ir.OpView, name: str, allowed: tuple[str, ...]) -> str:
    value = string(op, name)
    if value not in allowed:
        raise IncompleteError(f'{op.operation.name}: expected {name} in {allowed}, got "{value}"')
    return value


def _taps(filters: tuple[int, ...], part: int | None) -> Iterator[tuple[int, int, int, slice]]:
    """Yields the parts of the sums, with the taps and channels of each, in order; filters: r, s,
    c."""
    r, s, c = filters
    each = part or r * s * c
    for tap in range(r * s):
        first, end = tap * c, (tap + 1) * c
        for number in range(first // each, -(-end // each)):
            low, high = max(first, number * each), min(end, (number + 1) * each)
            yield number, *divmod(tap, s), slice(low - first, high - first)


@evaluate(tc.Conv2dOp)
def tc_conv2d(_: Interpreter, op: tc.Conv2dOp, x: Array, w: Array) -> Sequence[Array]:
    (sh, sw), (dh, dw) = integers(op, "strides"), integers(op, "dilations")
    top, bottom, left, right = integers(op, "pads")
    if _choice(op, "filter", ("hwcf", "fhwc")) == "fhwc":
        w = w.transpose(1, 2, 3, 0)
    type_ = op.operation.results[0].type
    wide: Any = np.float64
    if dtype_of(type_) == np.int32:  # sums wrap
        wide = np.int64
        x, w = (
            v.view(np.uint8) if plain else v
            for v, plain in zip((x, w), unsigned_operands(op), strict=True)
        )
    padded = np.pad(x.astype(wide), ((0, 0), (top, bottom), (left, right), (0, 0)))
    *parts, n, p, q, k = shape_of(type_)
    groups = conv_groups(op)
    images = np.split(padded, groups, axis=-1)
    filters = np.split(w.astype(wide), groups, axis=-1)
    total = np.zeros((*(parts or [1]), n, p, q, k), wide)
    sums = np.split(total, groups, axis=-1)
    for part, r, s, c in _taps(w.shape[:3], k_part(op)):
        rows = slice(r * dh, r * dh + (p - 1) * sh + 1, sh)
        columns = slice(s * dw, s * dw + (q - 1) * sw + 1, sw)
        for g in range(groups):
            sums[g][part] += images[g][:, rows, columns, c] @ filters[g][r, s, c]
    total = total if parts else total[0]
    return [total.astype(np.int32) if wide is np.int64 else _rounded(total, type_)]


@evaluate(tc.MatmulOp)
def tc_matmul(_: Interpreter, op: tc.MatmulOp, a: Array, b: Array) -> Sequence[Array]:
    if _choice(op, "a_layout", ("mk", "km")) == "km":
        a = a.swapaxes(-1, -2)
    if _choice(op, "b_layout", ("kn", "nk")) == "nk":
        b = b.swapaxes(-1, -2)
    type_ = op.operation.results[0].type
    integers_ = dtype_of(type_) == np.int32  # sums wrap
    wide: Any = np.int64 if integers_ else np.float64
    a, b = (
        (v.view(np.uint8) if plain else v).astype(wide)
        for v, plain in zip((a, b), unsigned_operands(op), strict=True)
    )
    total = in_parts(a, b, k_part(op))
    if out_layout(op) == "nm":
        total = np.ascontiguousarray(total.swapaxes(-1, -2))
    return [total.astype(np.int32) if integers_ else _rounded(total, type_)]


@evaluate(tc.SumPartsOp)
def tc_sum_parts(
    _: Interpreter, op: tc.SumPartsOp, parts: Array, sizes: Array | None = None
) -> Sequence[Array]:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total = convert(total, dtype_of(op.operation.results[0].type))
    return [total if sizes is None else written(op, sizes, total)]


@evaluate(tc.RepackOp)
def tc_repack(_: Interpreter, op: tc.RepackOp, source: Array) -> Sequence[Array]:
    moved = source.transpose(integers(op, "permutation"))
    out = np.zeros(shape_of(op.operation.results[0].type), source.dtype)
    places = zip(zeros_before(op), moved.shape, strict=True)
    out[tuple(slice(low, low + extent) for low, extent in places)] = moved
    return [out]


@evaluate(tc.PackCodesOp)
def tc_pack_codes(_: Interpreter, op: tc.PackCodesOp, codes: Array) -> Sequence[Array]:
    dtype = dtype_of(op.operation.results[0].type)
    mask = np.uint8(2 ** PACKED_BITS[dtype] - 1)
    return [(codes.view(np.uint8) & mask).view(dtype)]


@evaluate(tc.UnpackCodesOp)
def tc_unpack_codes(_: Interpreter, op: tc.UnpackCodesOp, packed: Array) -> Sequence[Array]:
    mask = np.uint8(2 ** PACKED_BITS[packed.dtype] - 1)
    return [(packed.view(np.uint8) & mask).view(np.int8)]
