"""Data movement: TMA, shared -> tensor memory, tensor memory -> registers -> global."""

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ext, ir

from .base import TC
from .types import MbarrierType, SmemType, TensorMapType, TmemType


class MakeTensorMapOp(TC.Operation, name="make_tensor_map"):
    """TMA descriptor of a kernel argument, innermost dimension first like the driver's call.

    ``mode`` ``"tiled"`` or ``"im2col"``; ``dims`` in elements, ``strides`` in bytes without the innermost,
    ``element_strides``; ``box`` in elements (tiled). For im2col ``box`` is
    ``[channels_per_pixel, pixels_per_column]`` and ``corners`` is ``[lower w, lower h, upper w, upper h]``
    (tiled: empty). ``swizzle`` as in ``!tc.smem``. Out-of-bounds elements read as zero (PTX ISA 5.5).
    """

    tensor: ext.Operand[ir.MemRefType]
    mode: ir.StringAttr
    dims: Any
    strides: Any
    box: Any
    element_strides: Any
    corners: Any
    swizzle: ir.StringAttr
    map: ext.Result[TensorMapType] = ext.result(default_factory=TensorMapType.get)


class TmaLoadOp(TC.Operation, name="tma_load"):
    """``cp.async.bulk.tensor`` global -> shared: one box at ``coords`` (innermost first, signed).

    The box fills consecutive rows of ``tile`` from row ``row`` (see ``!tc.smem``). ``offsets`` are the im2col
    tap offsets ``[w, h]`` (dynamic values, empty for tiled). With ``signal`` the load is asynchronous and
    counts its bytes on that mbarrier (PTX ISA 9.7.9.27).
    """

    map: ext.Operand[TensorMapType]
    coords: Sequence[ext.Operand[ir.IndexType]]
    offsets: Sequence[ext.Operand[ir.IndexType]]
    tile: ext.Operand[SmemType]
    row: ir.IntegerAttr
    nbytes: ir.IntegerAttr
    signal: ext.Operand[MbarrierType] | None = None


class CpOp(TC.Operation, name="cp"):
    """``tcgen05.cp.128x256b``: one K slice of a shared tile into tensor memory.

    Copies 128 rows x 32 bytes, elements ``[slice * 32 bytes, ...)`` of K of ``source``, to the 8 columns of
    slice ``slice`` of ``target``: row i goes to lane i (PTX ISA 9.7.16.9). Issued by one thread, asynchronous.
    """

    source: ext.Operand[SmemType]
    target: ext.Operand[TmemType]
    slice: ir.IntegerAttr


class TmemLdOp(TC.Operation, name="tmem_ld"):
    """``tcgen05.ld.32x32b.xN``: 32 lanes of quarter ``quarter``, N columns from ``column``, to registers.

    The result is ``vector<32xNxf32>``: row = lane in the quarter = thread of the warp (PTX ISA 9.7.16.8).
    Asynchronous: its registers are ready after ``tc.tmem_wait``.
    """

    source: ext.Operand[TmemType]
    quarter: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    value: ext.Result[ir.VectorType]


class TmemWaitOp(TC.Operation, name="tmem_wait"):
    """``tcgen05.wait::ld`` / ``::st`` (``kind`` = ``"ld"`` | ``"st"``) of the executing warp (PTX ISA 9.7.16.8)."""

    kind: ir.StringAttr


class StoreRowsOp(TC.Operation, name="store_rows"):
    """Store rows of a register tile to global memory, clipped to the tensor.

    ``value`` is ``vector<32 x C x T>``. Row i < ``rows`` goes along dimension ``row_dim`` of ``tensor``, columns along
    the last dimension, from ``indices`` (one per dimension, unsigned); whatever falls outside the
    tensor in any dimension is not written. Each thread stores its row with vector stores.
    """

    value: ext.Operand[ir.VectorType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    rows: ir.IntegerAttr
    row_dim: ir.IntegerAttr
