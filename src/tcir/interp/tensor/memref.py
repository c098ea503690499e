"""Rules of `memref` and `bufferization`, to which upstream's bufferisation converts ops on tensors.

A memref is a numpy array that is written in place. Casts, reshapes and subviews are arrays that
share its memory. The rules of allocations, casts and extents are those of tensors (`tensor`). Freed
memory is undefined, as is memory that was never written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError, InputError
from tcir.interp.tensor.func import module_of
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.tensor import empty, inside, sliced
from tcir.interp.types import Array, constant, poison, shape_of


@evaluate("memref.dealloc")
def dealloc(_: Interpreter, __: ir.OpView, buffer: Array) -> Sequence[Array]:
    buffer[...] = poison(buffer.shape, buffer.dtype)
    return ()


@evaluate("memref.get_global")
def get_global(_: Interpreter, op: ir.OpView) -> Sequence[Array]:
    """Returns a new buffer with a constant's value. The uses of a constant need not share one
    buffer, because constants are read-only.
    """
    name = ir.FlatSymbolRefAttr(op.operation.attributes["name"]).value
    for each in module_of(op.operation).regions[0].blocks[0].operations:
        made = each.operation
        if made.name == "memref.global" and made.attributes["sym_name"].value == name:
            if "constant" not in made.attributes:
                raise IncompleteError(f"@{name}: expected a constant memref.global")
            return [constant(made.attributes["initial_value"], op.operation.results[0].type)]
    raise IncompleteError(f"expected memref.global @{name} in the module, got none")


@evaluate("memref.load")
def load(_: Interpreter, op: ir.OpView, buffer: Array, *indices: Array) -> Sequence[Array]:
    return [buffer[inside(op, buffer, indices)]]


@evaluate("memref.store")
def store(
    _: Interpreter, op: ir.OpView, value: Array, buffer: Array, *indices: Array
) -> Sequence[Array]:
    buffer[inside(op, buffer, indices)] = value
    return ()


@evaluate("memref.copy", "bufferization.materialize_in_destination")
def copy(_: Interpreter, op: ir.OpView, source: Array, target: Array) -> Sequence[Array]:
    if op.operation.results:  # of tensors: the copy is a value
        return [source.copy()]
    if source.shape != target.shape:
        raise InputError(f"{op.operation.name}: expected shape {target.shape}, got {source.shape}")
    target[...] = source.copy()
    return ()


@evaluate("memref.subview")
def subview(interpreter: Interpreter, op: ir.OpView, buffer: Array, *_: Array) -> Sequence[Array]:
    return [_same_memory(sliced(interpreter, op, buffer), buffer)]


@evaluate("memref.collapse_shape", "memref.expand_shape")
def reshape(_: Interpreter, op: ir.OpView, buffer: Array, *__: Array) -> Sequence[Array]:
    return [_same_memory(buffer.reshape(shape_of(op.operation.results[0].type)), buffer)]


def _same_memory(view: Array, buffer: Array) -> Array:
    """Returns `view`; IncompleteError if numpy copied, so that a store would not reach the
    buffer."""
    if view.size and not np.may_share_memory(view, buffer):
        raise IncompleteError(f"no view of a buffer with strides {buffer.strides} in bytes")
    return view


@evaluate(
    "bufferization.to_tensor",
    "bufferization.to_buffer",
    "bufferization.clone",
    "bufferization.alloc_tensor",
)
def converted(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    """Returns a copy of the array: a tensor is a value, and no later write may change it."""
    if op.operation.name != "bufferization.alloc_tensor":
        return [operands[0].copy()]
    if op.copy is not None:
        return [operands[-1].copy()]
    return empty(_, op, *operands)
