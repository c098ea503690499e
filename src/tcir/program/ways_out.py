"""Suggestions for error messages about an argument that is not a numpy array of the expected
type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcir.interp.types import Array, DType

OF_TENSOR = (
    "take its array: a.numpy() of a tensor on the CPU, for bfloat16 "
    "a.view(torch.int16).numpy().view(ml_dtypes.bfloat16); tcir.torch.compile takes functions of "
    "tensors"
)


def to_array(value: object, dtype: DType | None = None) -> str:
    """Describes how to convert a value to a numpy array; "" if that is not known."""
    if type(value).__module__.split(".")[0] == "torch":
        return OF_TENSOR
    if isinstance(value, list | tuple | int | float):
        return f"np.asarray(a, '{'float16' if dtype is None else dtype.name}') makes one"
    return "np.asarray(a) makes one" if hasattr(value, "__array__") else ""


def to_type(array: Array, dtype: DType | None = None) -> str:
    """Describes how to convert an array to a type, or to this machine's byte order; "" if the
    array already has both."""
    if not array.dtype.isnative:
        name = array.dtype.newbyteorder("=").name
        return f"in another byte order ({array.dtype.str}): a.astype('{name}')"
    if dtype is None or array.dtype == dtype:
        return ""
    if {array.dtype.kind, dtype.kind} == {"i", "u"} and array.dtype.itemsize == dtype.itemsize:
        return f"MLIR integers are signless, and these have the same bits: a.view('{dtype.name}')"
    return f"a.astype('{dtype.name}')"
