"""Shape:stride layouts, swizzles and the layouts of tcgen05 operands and tensor memory."""

from __future__ import annotations

from .int_tuple import IntTuple, LayoutError
from .layout import (
    Layout,
    coalesce,
    complement,
    composition,
    concatenate,
    is_injective,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
    transpose,
    with_shape,
)
from .smem import OperandLayout, operand_layout
from .swizzle import SWIZZLES, Swizzle, SwizzledLayout

__all__ = [
    "SWIZZLES",
    "IntTuple",
    "Layout",
    "LayoutError",
    "OperandLayout",
    "Swizzle",
    "SwizzledLayout",
    "coalesce",
    "complement",
    "composition",
    "concatenate",
    "is_injective",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "operand_layout",
    "right_inverse",
    "transpose",
    "with_shape",
]
