"""Converts MLIR types and constants to numpy (and ml_dtypes) types and values."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tcir._mlir import ir
from tcir.errors import IncompleteError

Array: TypeAlias = NDArray[Any]
"""A numpy array of any element type, ml_dtypes' included; numpy scalars count as arrays."""
DType: TypeAlias = np.dtype[Any]

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "i1": np.bool_,
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
"""numpy (or ml_dtypes) types by MLIR element type; signless integers are signed."""
_BELOW_A_BYTE = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4))
"""Integers that numpy has no kind for."""


def dtype_of(type_: ir.Type) -> DType:
    """The numpy type of a scalar, or of the elements of a tensor, vector or memref.

    Signless integers are signed in numpy. IncompleteError for types without an equivalent.
    """
    if isinstance(type_, ir.ShapedType):
        type_ = type_.element_type
    try:
        return np.dtype(DTYPES[str(type_)])
    except KeyError:
        raise IncompleteError(
            f"element type {type_} has no equivalent in numpy or ml_dtypes"
        ) from None


def shape_of(type_: ir.Type) -> tuple[int, ...]:
    """The static shape of a shaped type; IncompleteError if it is dynamic."""
    if not type_.has_static_shape:
        raise IncompleteError(f"expected a static shape, got {type_}")
    return tuple(type_.shape)


def is_float(dtype: DType) -> bool:
    """Whether `dtype` is a floating-point type of numpy or ml_dtypes."""
    return dtype.kind not in "biu" and dtype not in _BELOW_A_BYTE


def is_integer(dtype: DType) -> bool:
    """Whether `dtype` is an integer of numpy or ml_dtypes, of two bits or more."""
    return dtype.kind in "iu" or dtype in _BELOW_A_BYTE


def ends_of_integers(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest number of a type of integers."""
    of = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(of.min), int(of.max)


def poison(shape: tuple[int, ...], dtype: DType) -> Array:
    """Returns an undefined tensor: all bits are set, which is NaN in every float type that has a
    NaN.
    """
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    if dtype in _BELOW_A_BYTE:
        return np.full(shape, -1, dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.full(size, 0xFF, np.uint8).view(dtype).reshape(shape)


def constant(attribute: ir.Attribute, type_: ir.Type) -> Array:
    """The value of an `arith.constant`: a numpy scalar, or an array of the shaped type's shape."""
    if isinstance(attribute, ir.BoolAttr):
        return np.asarray(attribute.value, np.bool_)[()]
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        return dtype_of(type_).type(attribute.value)
    shape, dtype = shape_of(type_), dtype_of(type_)
    if getattr(attribute, "is_splat", False):
        return np.full(shape, constant(attribute.get_splat_value(), type_.element_type), dtype)
    if isinstance(attribute, ir.DenseElementsAttr):
        try:
            return np.array(attribute).astype(dtype).reshape(shape)
        except TypeError:  # the bindings hand out no buffer of bf16, f8, …
            return _dense_text(str(attribute), dtype).reshape(shape)
    raise IncompleteError(f"constant {attribute}: expected a number or dense elements")


def dense(array: Array, type_: ir.Type) -> ir.DenseElementsAttr:
    """Returns a dense attribute of a tensor type, with the elements of an array, bit for bit."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return ir.DenseElementsAttr.get(bits.reshape(array.shape), type=type_)


def _dense_text(text: str, dtype: DType) -> Array:
    """The elements of an attribute as it is printed: all in hexadecimal, or a list of numbers, in
    which NaN and infinities are bit patterns."""
    body = text.removeprefix("dense<").rpartition("> : ")[0]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype)
    words = body.replace("[", "").replace("]", "").split(", ")
    values = np.array([0.0 if w.startswith("0x") else float(w) for w in words]).astype(dtype)
    bits = values.view(f"u{dtype.itemsize}")
    for place, word in enumerate(words):
        if word.startswith("0x"):
            bits[place] = int(word, 16)
    return values
