"""Memory ops: shared tiles, tensor memory, barriers."""

from typing import Any

from tcir._mlir import ext, ir

from .base import TC
from .types import RingType, TmemBaseType


class SmemTileOp(TC.Operation, name="smem_tile"):
    """A shared-memory tile, or a ring of them.

    Before ``plan-memory`` its place is the allocator's business and every execution of the op
    yields a fresh, undefined tile; afterwards the attribute ``offset`` (bytes, multiple of 1024) fixes it.
    """

    tile: ext.Result[Any]  # SmemType or RingType of it


class TmemTileOp(TC.Operation, name="tmem_tile"):
    """A tensor-memory tile, or a ring of them.

    Before ``plan-memory`` it has no operand and no place; afterwards it is the run of columns
    from attribute ``column`` of the allocation ``base``.
    """

    tile: ext.Result[Any]  # TmemType or RingType of it
    base: ext.Operand[TmemBaseType] | None = None


class TmemAllocOp(TC.Operation, name="tmem_alloc"):
    """``tcgen05.alloc``: ``columns`` whole columns, a power of two from 32 to 512 (PTX ISA 9.7.16.7)."""

    columns: ir.IntegerAttr
    base: ext.Result[TmemBaseType] = ext.result(default_factory=TmemBaseType.get)


class TmemRelinquishOp(TC.Operation, name="tmem_relinquish"):
    """``tcgen05.relinquish_alloc_permit``: this CTA allocates no more (PTX ISA 9.7.16.7)."""


class TmemDeallocOp(TC.Operation, name="tmem_dealloc"):
    """``tcgen05.dealloc`` of a whole allocation; everything must be freed before exit (PTX ISA 9.7.16.7)."""

    base: ext.Operand[TmemBaseType]
    columns: ir.IntegerAttr


class MbarrierInitOp(TC.Operation, name="mbarrier_init"):
    """One mbarrier or a ring of them, each expecting ``arrivals`` arrivals a phase, initialised once.

    Attribute ``offset`` (bytes) once memory is planned. The initialisation is part of the op; the
    fence and CTA barrier that publish it are separate ops (PTX ISA 9.7.13.15).
    """

    arrivals: ir.IntegerAttr
    bar: ext.Result[Any]  # MbarrierType or RingType of it


class SlotOp(TC.Operation, name="slot"):
    """Slot ``index`` (taken modulo nothing: must be in ``[0, count)``) of a ring."""

    ring: ext.Operand[RingType]
    index: ext.Operand[ir.IndexType]
    slot: ext.Result[Any]
