"""Rules of `tensor`: creation, padding, slices, reshapes. Every result is a new array or a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.dialect.attributes import integers
from tcir.errors import InputError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of, poison, shape_of

DYNAMIC = -(2**63)
"""`ShapedType::kDynamic`: this static entry is given by the next operand."""


def mixed(op: ir.OpView, static: str, operands: Any, values: Any) -> list[int]:
    """Returns the static attribute `static` with its dynamic entries filled in from `operands`, in
    order.
    """
    dynamic = iter(operands)
    return [
        int(values[next(dynamic)]) if entry == DYNAMIC else entry for entry in integers(op, static)
    ]


def _slices(interpreter: Interpreter, op: ir.OpView) -> tuple[list[int], tuple[slice, ...]]:
    values = interpreter.values
    offsets = mixed(op, "static_offsets", op.offsets, values)
    sizes = mixed(op, "static_sizes", op.sizes, values)
    strides = mixed(op, "static_strides", op.strides, values)
    return sizes, tuple(
        slice(o, o + (n - 1) * s + 1 if n else o, s)
        for o, n, s in zip(offsets, sizes, strides, strict=True)
    )


def inside(op: ir.OpView, array: Array, indices: Sequence[Array]) -> tuple[Array, ...]:
    """Returns the `indices` of `op` into `array`. InputError if an index is out of bounds, because
    numpy would count a negative index from the end.
    """
    if any(np.any(np.less(i, 0) | (i >= n)) for i, n in zip(indices, array.shape, strict=True)):
        got = [i.tolist() for i in indices]
        raise InputError(f"{op.operation.name}: expected indices within {array.shape}, got {got}")
    return tuple(indices)


def _checked(tensor: Array, sizes: list[int], where: tuple[slice, ...], op: ir.OpView) -> Array:
    within = all(s.start >= 0 and s.stop <= n for s, n in zip(where, tensor.shape))
    if not within:
        raise InputError(
            f"{op.operation.name}: expected a slice within {tensor.shape}, got {where}"
        )
    return tensor[where].reshape(sizes)


@evaluate("tensor.empty", "memref.alloc", "memref.alloca")
def empty(_: Interpreter, op: ir.OpView, *sizes: Array) -> Sequence[Array]:
    type_ = op.operation.results[0].type
    dynamic = iter(sizes)
    shape = tuple(int(next(dynamic)) if n == DYNAMIC else n for n in type_.shape)
    if min(shape, default=0) < 0:
        raise InputError(f"{op.operation.name}: expected sizes of at least 0, got {list(shape)}")
    return [poison(shape, dtype_of(type_))]


@evaluate("tensor.yield")
def tensor_yield(_: Interpreter, __: ir.OpView, *operands: Array) -> Sequence[Array]:
    return operands


@evaluate("tensor.pad")
def tensor_pad(
    interpreter: Interpreter, op: ir.OpView, source: Array, *_: Array
) -> Sequence[Array]:
    low = mixed(op, "static_low", op.low, interpreter.values)
    high = mixed(op, "static_high", op.high, interpreter.values)
    shape = [n + a + b for n, a, b in zip(source.shape, low, high, strict=True)]
    if min(low + high, default=0) < 0:
        raise InputError(f"tensor.pad: expected padding of at least 0, got {low} and {high}")
    (value,) = interpreter.region(op, np.indices(shape, sparse=True))
    padded = np.empty(shape, source.dtype)
    padded[...] = value
    padded[tuple(slice(a, a + n) for a, n in zip(low, source.shape))] = source
    return [padded]


@evaluate("tensor.extract_slice")
def tensor_extract_slice(
    interpreter: Interpreter, op: ir.OpView, source: Array, *_: Array
) -> Sequence[Array]:
    return [sliced(interpreter, op, source).copy()]


def sliced(interpreter: Interpreter, op: ir.OpView, source: Array) -> Array:
    """Returns the slice of `source` that `op` names, as a view if possible."""
    sizes, where = _slices(interpreter, op)
    picked = _checked(source, sizes, where, op)
    result = op.operation.results[0].type
    if result.rank != source.ndim:  # rank-reducing: unit dimensions are dropped
        picked = picked.reshape([n for n in result.shape if n != DYNAMIC] or picked.size)
    return picked


@evaluate("tensor.concat")
def tensor_concat(_: Interpreter, op: ir.OpView, *parts: Array) -> Sequence[Array]:
    return [np.concatenate(parts, ir.IntegerAttr(op.attributes["dim"]).value)]


@evaluate("tensor.insert_slice")
def tensor_insert_slice(
    interpreter: Interpreter, op: ir.OpView, source: Array, target: Array, *_: Array
) -> Sequence[Array]:
    return [inserted(interpreter, op, source, target)]


def inserted(interpreter: Interpreter, op: ir.OpView, source: Array, target: Array) -> Array:
    """Returns a copy of `target` with `source` inserted at the slice that `op` names."""
    sizes, where = _slices(interpreter, op)
    _checked(target, sizes, where, op)
    result = target.copy()
    result[where] = source.reshape(sizes)
    return result


@evaluate("tensor.collapse_shape", "tensor.expand_shape", "tensor.reshape")
def tensor_reshape(_: Interpreter, op: ir.OpView, source: Array, *__: ir.OpView) -> Sequence[Array]:
    return [source.reshape(shape_of(op.operation.results[0].type))]


@evaluate("tensor.cast", "memref.cast")
def cast(_: Interpreter, op: ir.OpView, source: Array) -> Sequence[Array]:
    expected = op.operation.results[0].type.shape
    if any(n not in (DYNAMIC, m) for n, m in zip(expected, source.shape)):
        name = op.operation.name
        raise InputError(f"{name}: expected shape {list(expected)}, got {source.shape}")
    return [source]


@evaluate("tensor.dim", "memref.dim")
def dim(_: Interpreter, op: ir.OpView, source: Array, dimension: Array) -> Sequence[Array]:
    extents = np.asarray(source.shape, np.int64)
    return [extents[inside(op, extents, [dimension])]]


@evaluate("tensor.extract")
def tensor_extract(
    _: Interpreter, op: ir.OpView, source: Array, *indices: Array
) -> Sequence[Array]:
    return [source[inside(op, source, indices)]]


@evaluate("cf.assert")
def assertion(_: Interpreter, op: ir.OpView, holds: Array) -> Sequence[Array]:
    if not np.all(holds):
        raise InputError(f"cf.assert: {ir.StringAttr(op.attributes['msg']).value}")
    return ()


@evaluate("tensor.insert")
def tensor_insert(
    _: Interpreter, op: ir.OpView, value: Array, target: Array, *indices: Array
) -> Sequence[Array]:
    result = target.copy()
    result[inside(op, target, indices)] = value
    return [result]


@evaluate("tensor.from_elements")
def tensor_from_elements(_: Interpreter, op: ir.OpView, *elements: Array) -> Sequence[Array]:
    type_ = op.operation.results[0].type
    return [np.array(elements, dtype_of(type_)).reshape(shape_of(type_))]


@evaluate("tensor.splat")
def tensor_splat(_: Interpreter, op: ir.OpView, value: Array, *__: ir.OpView) -> Sequence[Array]:
    type_ = op.operation.results[0].type
    return [np.full(shape_of(type_), value, dtype_of(type_))]
