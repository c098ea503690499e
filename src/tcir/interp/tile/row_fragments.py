"""Rules of softmax ops on fragments, with one number per row. An agent has the rows of the whole
CTA, or those of its warp.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp.online_softmax import (
    exponentials,
    inverse_sum,
    log_sum,
    masked,
    online_max,
)
from tcir.interp.tensor.arith import convert, saturated
from tcir.interp.tensor.math import fma
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.loads import store_elements
from tcir.interp.tile.movement import segments
from tcir.interp.tile.values import MemRef, Stored
from tcir.interp.tile.warp import held_by
from tcir.interp.tile.wgmma import settled
from tcir.interp.types import Array, dtype_of

COLUMNS = 8
"""Columns of an atom of C, of which each of four threads has two (PTX ISA 9.7.14.5)."""


def _number(op: ir.OpView, name: str) -> np.float32:
    return np.float32(ir.FloatAttr(op.attributes[name]).value)


def _of_numbers(
    compiler: Compiler, op: ir.OpView, compute: Callable[..., tuple[Array, ...]]
) -> Step:
    """A step that applies `compute` to the operands' numbers of f32."""
    operands, site = compiler.operands(op), compiler.site(op)
    results = compiler.slots_of(op.operation.results)

    def step(frame: Frame) -> None:
        given = [settled(frame, each, site).view(np.float32) for each in operands]
        with np.errstate(all="ignore"):
            made = compute(*given)
        for slot, array in zip(results, made, strict=True):
            frame.values[slot] = np.ascontiguousarray(array, np.float32).view(np.uint32)

    return step


@execute(tc.FillRowsOp)
def fill_rows(compiler: Compiler, op: tc.FillRowsOp) -> Step:
    part, value = held_by(compiler, op.rows.type), _number(op, "value").view(np.uint32)
    return compiler.assigns(op, lambda frame: np.full(part(frame).shape, value))


@execute(tc.MaskFragmentOp)
def mask_fragment(compiler: Compiler, op: tc.MaskFragmentOp) -> Step:
    scores_, row_, column_, keys_ = compiler.operands(op)
    result, site, part = compiler.result(op), compiler.site(op), held_by(compiler, op.scores.type)
    band = op.band

    def mask(frame: Frame) -> None:
        v = frame.values
        scores = settled(frame, scores_, site).view(np.float32)
        row, column = part(frame).moved([v[row_], v[column_]])
        v[result] = masked(scores, row, column, v[keys_], band).view(np.uint32)

    return mask


@execute(tc.OnlineMaxOp)
def maximum(compiler: Compiler, op: tc.OnlineMaxOp) -> Step:
    scale, tau, below = _number(op, "scale"), float(_number(op, "tau")), op.below

    def compute(scores: Array, before: Array) -> tuple[Array, ...]:
        largest = np.fmax.reduce(scores, axis=1, keepdims=True)
        return online_max(before, largest, scale, tau, below)

    return _of_numbers(compiler, op, compute)


@execute(tc.ExpFragmentOp)
def exp_fragment(compiler: Compiler, op: tc.ExpFragmentOp) -> Step:
    scale = _number(op, "scale")
    return _of_numbers(compiler, op, lambda scores, rows: (exponentials(scores, rows, scale),))


def row_sums(elements: Array) -> Array:
    """Sums of f32 along each row, in the order that ``tc.add_row_sums`` defines: [rows, 1]."""
    rows, columns = elements.shape
    # [rows, thread, odd, atom]: columns of an atom are those of threads 0, 0, 1, 1, 2, 2, 3, 3
    held = elements.reshape(rows, columns // COLUMNS, COLUMNS // 2, 2).transpose(0, 2, 3, 1)
    each = reduce(np.add, np.moveaxis(held, -1, 0))
    threads = each[..., 0] + each[..., 1]
    pairs = threads[:, 0::2] + threads[:, 1::2]
    return pairs[:, :1] + pairs[:, 1:]


@execute(tc.AddRowSumsOp)
def add_row_sums(compiler: Compiler, op: tc.AddRowSumsOp) -> Step:
    return _of_numbers(compiler, op, lambda before, alpha, p: (fma(before, alpha, row_sums(p)),))


@execute(tc.ScaleFragmentOp)
def scale_fragment(compiler: Compiler, op: tc.ScaleFragmentOp) -> Step:
    return _of_numbers(compiler, op, lambda elements, factors: (elements * factors,))


@execute(tc.InvertRowsOp)
def invert_rows(compiler: Compiler, op: tc.InvertRowsOp) -> Step:
    times = op.times
    return _of_numbers(compiler, op, lambda rows: (inverse_sum(rows, times),))


@execute(tc.LogSumRowsOp)
def log_sum_rows(compiler: Compiler, op: tc.LogSumRowsOp) -> Step:
    scale = _number(op, "scale")
    return _of_numbers(compiler, op, lambda most, total: (log_sum(most, total, scale),))


@execute(tc.FragmentAsAOp)
def fragment_as_a(compiler: Compiler, op: tc.FragmentAsAOp) -> Step:
    (c_,), result, site = compiler.operands(op), compiler.result(op), compiler.site(op)
    dtype = dtype_of(op.a.type.element)

    def pack(frame: Frame) -> None:
        numbers = settled(frame, c_, site).view(np.float32)
        with np.errstate(all="ignore"):
            rounded = saturated(numbers, dtype) if dtype.itemsize == 1 else convert(numbers, dtype)
        frame.values[result] = np.ascontiguousarray(rounded).view(f"u{dtype.itemsize}")

    return pack


@execute(tc.StoreFragmentRowsOp)
def store_fragment_rows(compiler: Compiler, op: tc.StoreFragmentRowsOp) -> Step:
    """Stores the columns that are inside the tensor, and records this store as the writer of the
    elements.
    """
    (rows_,), (tensor_,), indices_, ends = segments(compiler, op)
    site, writers, part = compiler.site(op), compiler.writers, held_by(compiler, op.rows.type)

    def store(frame: Frame) -> None:
        v = frame.values
        target: MemRef = v[tensor_]
        numbers = settled(frame, rows_, site).ravel()
        *outer, first = (v[i] for i in indices_)
        if any(not 0 <= i < extent for i, extent in zip(outer, target.shape, strict=False)):
            raise frame.cta_run.error(
                "bad-batch", f"expected indices inside {list(target.shape)}, got {outer}", site
            )
        at = first + part(frame).origin[0] + np.arange(len(numbers), dtype=np.int64)
        inside = (at >= 0) & (at < min([target.shape[-1], *(v[end] for end in ends)]))
        if not inside.any():
            return
        line = int(np.ravel_multi_index(outer, target.shape[:-1])) if outer else 0
        places = line * target.shape[-1] + at[inside][:, None]
        stored = Stored(frame.cta.index, 0, int(at[0]), site)
        store_elements(frame, writers, target, places, numbers[inside], stored)

    return store
