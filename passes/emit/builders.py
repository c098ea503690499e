"""Builders of `tc` ops from Python values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import CTA_GROUP, PAIR


def i64(value: int) -> ir.IntegerAttr:
    """A 64-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def i64s(values: Sequence[int]) -> ir.DenseI64ArrayAttr:
    """An array attribute of 64-bit integers."""
    return ir.DenseI64ArrayAttr.get(list(values))


def flag(value: bool) -> ir.IntegerAttr:
    """A one-bit attribute, built explicitly because the bindings treat a false `BoolAttr` like an
    absent attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(1), int(value))


@dataclass(frozen=True)
class TmaBox:
    """The elements that one TMA load transfers, as a tensor map describes them.

    sizes:   elements per dimension, innermost first; for im2col modes the numbers of channels and
             pixels
    steps:   element strides per dimension; empty if all are 1
    mode:    ``tiled``, ``im2col`` or ``im2col_w128``
    corners: corners of the bounding box, for the im2col modes
    """

    sizes: Sequence[int]
    steps: Sequence[int] = ()
    mode: str = "tiled"
    corners: Sequence[int] = ()


def make_tensor_map(
    tensor: ir.Value,
    box: TmaBox,
    *,
    dims: Sequence[int],
    swizzle: str,
    strides: Sequence[int] | None = None,
    dtype: str | None = None,
) -> ir.Value:
    """``tc.make_tensor_map`` of a tensor with dimensions `dims`, innermost first.

    strides: strides in bytes, without the innermost dimension; None for a tensor that is contiguous
             in this order
    dtype:   the map's element type; None: the element type of the tensor, or ``u8`` if that has one
             byte, because the driver has no 8-bit floats
    """
    element = ir.MemRefType(tensor.type).element_type
    if strides is None:
        strides = list(accumulate((tc.element_bytes(element), *dims[:-1]), mul))[1:]
    if dtype is None:
        dtype = "u8" if tc.element_bytes(element) == 1 else ""
    # Built by name: the bindings take an empty array (no corners) for an absent attribute.
    return ir.Operation.create(
        tc.MakeTensorMapOp.OPERATION_NAME,
        results=[tc.TensorMapType.get()],
        operands=[tensor],
        attributes={
            "mode": ir.StringAttr.get(box.mode),
            "dims": i64s(dims),
            "strides": i64s(strides),
            "box": i64s(box.sizes),
            "element_strides": i64s(box.steps or [1] * len(dims)),
            "corners": i64s(box.corners),
            "swizzle": ir.StringAttr.get(swizzle),
        }
        | ({"dtype": ir.StringAttr.get(dtype)} if dtype else {}),
    ).result


def tma_load(
    tensor_map: ir.Value,
    coords: Sequence[ir.Value],
    tile: ir.Value,
    row: int,
    nbytes: int,
    offsets: Sequence[ir.Value] = (),
    signal: ir.Value | None = None,
    halo: int = 0,
) -> tc.TmaLoadOp:
    """Builds ``tc.tma_load``. halo: only for a tensor map of mode im2col_w128"""
    op = tc.TmaLoadOp(
        tensor_map, list(coords), list(offsets), tile, i64(row), i64(nbytes), signal=signal
    )
    if halo:
        op.attributes["halo"] = i64(halo)
    return op


def mma(
    d: ir.Value,
    a: ir.Value,
    b: ir.Value,
    accumulate: ir.Value,
    k_slice: int,
    ashift: bool = False,
    a_row: int | None = None,
    unsigned: Sequence[int] = (0, 0),
) -> tc.MmaOp:
    """Builds ``tc.mma`` of slice `k_slice` of both A and B. unsigned: whether i8 elements of A and
    of B are unsigned"""
    op = tc.MmaOp(d, a, b, accumulate, i64(k_slice), i64(k_slice), flag(ashift))
    if a_row is not None:
        op.attributes["a_row"] = i64(a_row)
    if any(unsigned):
        op.attributes["unsigned"] = i64s(unsigned)
    return op


def of_pair(op: ir.OpView) -> None:
    """Marks a tcgen05 op, a TMA load, an arrival or a wait as acting on a CTA pair."""
    op.attributes[CTA_GROUP] = i64(PAIR)


def fence(kind: str) -> tc.FenceOp:
    """Builds ``tc.fence``."""
    return tc.FenceOp(ir.StringAttr.get(kind))


def tails(outer: bool, inner: bool) -> str:
    """Builds the attribute ``tails`` of ops that access global memory."""
    return " ".join(name for name, is_one in (("outer", outer), ("inner", inner)) if is_one)
