"""Shape:stride layouts, swizzles, atoms, and tiled copies and mmas built from them."""

from __future__ import annotations

from .atoms import COPY_OPERATIONS, MMA_ATOMS, CopyAtom, MmaAtom, copy_atom, mma_atom
from .banks import conflict_free_swizzle, conflicts, copy_conflicts, copy_phases, phases
from .descriptor import shared_descriptor
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
from .tensor import Tensor, identity_tensor
from .tile import flat_divide, local_tile, raked_product, row_major, tile_to_shape, zipped_divide
from .tiled_copy import (
    ThrCopy,
    TiledCopy,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_D,
    make_tiled_copy_S,
)
from .tiled_mma import ThrMma, TiledMma, make_tiled_mma
from .tmem_copy import TmemCopy, make_tmem_copy

__all__ = [
    "COPY_OPERATIONS",
    "MMA_ATOMS",
    "SWIZZLES",
    "CopyAtom",
    "IntTuple",
    "Layout",
    "LayoutError",
    "MmaAtom",
    "OperandLayout",
    "Swizzle",
    "SwizzledLayout",
    "Tensor",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
    "TmemCopy",
    "coalesce",
    "complement",
    "composition",
    "concatenate",
    "conflict_free_swizzle",
    "conflicts",
    "copy_atom",
    "copy_conflicts",
    "copy_phases",
    "flat_divide",
    "identity_tensor",
    "is_injective",
    "left_inverse",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_D",
    "make_tiled_copy_S",
    "make_tiled_mma",
    "make_tmem_copy",
    "mma_atom",
    "operand_layout",
    "phases",
    "raked_product",
    "right_inverse",
    "row_major",
    "shared_descriptor",
    "tile_to_shape",
    "transpose",
    "with_shape",
    "zipped_divide",
]
