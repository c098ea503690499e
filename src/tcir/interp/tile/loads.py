"""Rules of loads from global memory, and of stores of contiguous elements to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import optional_integer
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import MemRef, RegisterTile, Site, Stored, Writers
from tcir.interp.types import Array, shape_of


@execute("memref.load")
def load(compiler: Compiler, op: ir.OpView) -> Step:
    return _load(compiler, op, lambda element: element)


@execute(tc.LoadIndexOp)
def load_index(compiler: Compiler, op: tc.LoadIndexOp) -> Step:
    return _load(compiler, op, lambda element: element.item())


def _load(compiler: Compiler, op: ir.OpView, converted: Callable[[np.generic], object]) -> Step:
    """Loads an element, the same in every thread."""
    source_, *indices_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def load(frame: Frame) -> None:
        v = frame.values
        source: MemRef = v[source_]
        at = tuple(v[i] for i in indices_)
        if any(not 0 <= i < n for i, n in zip(at, source.shape, strict=True)):
            raise frame.cta_run.error(
                "access-outside-tensor", f"expected an index in {source.shape}, got {at}", site
            )
        size = source.dtype.itemsize
        first = int(np.ravel_multi_index(at, source.shape)) if at else 0
        address = np.array([source.address + first * size], np.int64)
        raw = frame.agent.memory.load("global", address, size, site=site)
        v[result] = converted(np.ascontiguousarray(raw).view(source.dtype).reshape(-1)[0])

    return load


@execute(tc.LoadRowsOp)
def load_rows(compiler: Compiler, op: tc.LoadRowsOp) -> Step:
    source_, *indices_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)
    shape = shape_of(op.value.type)
    along = [optional_integer(op, name) for name in ("row_dim", "column_dim")]
    extents = [shape[0], shape[1] if along[1] is not None else 1]  # every thread loads its own

    def load(frame: Frame) -> None:
        v = frame.values
        source: MemRef = v[source_]
        places = []
        for dim, slot in enumerate(indices_):
            first = v[slot].data[:, None] if isinstance(v[slot], RegisterTile) else v[slot]
            index = np.broadcast_to(np.asarray(first, np.int64), extents)
            if dim in along:
                index = index + np.indices(extents)[along.index(dim)]
            places.append(index)
        data = gather(frame, source, places, extents, site)
        v[result] = RegisterTile(np.broadcast_to(data, shape), quarter=-1)

    return load


def gather(
    frame: Frame, source: MemRef, places: Sequence[Array], shape: Sequence[int], site: Site
) -> Array:
    """Loads the elements at the given indices (one array per dimension, broadcast to `shape`); an
    index outside the tensor gives zero.
    """
    linear, inside = np.zeros(shape, np.int64), np.ones(shape, bool)
    for index, extent in zip(places, source.shape, strict=True):
        inside = inside & (index >= 0) & (index < extent)
        linear = linear * extent + index
    data = np.zeros(linear.shape, source.dtype)
    if inside.any():
        size = source.dtype.itemsize
        addresses = source.address + linear[inside] * size
        raw = frame.agent.memory.load("global", addresses, size, site=site)
        data[inside] = np.ascontiguousarray(raw).view(source.dtype).reshape(-1)
    return data


def store_elements(
    frame: Frame,
    writers: Writers,
    target: MemRef,
    elements: Array,
    data: Array,
    stored: Stored,
    lanes: Array | None = None,
) -> None:
    """Stores rows of contiguous elements, and records which store wrote each element.

    elements: linear indices in the tensor, [rows, columns]; data: the bytes of these elements
    lanes:    as in `Writers.record`
    """
    first = target.address + elements[:, 0] * target.dtype.itemsize
    raw = np.ascontiguousarray(data).view(np.uint8).reshape(len(elements), -1)
    frame.agent.memory.store("global", first, raw, site=stored.site)
    writers.record(target, elements, stored, lanes)
