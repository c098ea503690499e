"""Lowering of tiles, rings, barriers, allocations and warp roles: their addresses, and the threads
that execute them."""

from __future__ import annotations

from dataclasses import replace

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, integer, integers, string
from tcir.dialect.cta_pair import LEADER, PAIR, cta_group_of
from tcir.dialect.limits import MBARRIER_BYTES
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.gpu_module import pointer_type

from .converter import (
    Converter,
    GlobalTensor,
    Mbarrier,
    Ring,
    SharedAddress,
    SmemTile,
    StagedTile,
    TmemBase,
    TmemTile,
    integer_attribute,
    lower,
)


def is_equal(converter: Converter, value: ir.Value, number: int) -> ir.Value:
    """Emits the comparison ``value == number``."""
    return arith.CmpIOp(arith.CmpIPredicate.eq, value, converter.constant(number)).result


@lower(tc.SmemTileOp)
def convert_smem_tile(converter: Converter, op: tc.SmemTileOp) -> None:
    """Records the tile's address in shared memory."""
    tile = op.tile.type
    address = SharedAddress(converter.smem, integer_attribute(op, "offset"))
    of = tile.of if isinstance(tile, tc.RingType) else tile
    if isinstance(of, tc.StagedType):
        staged = StagedTile(of, address)
        is_ring = isinstance(tile, tc.RingType)
        converter.values[op.tile] = Ring(staged, of.nbytes) if is_ring else staged
        return
    if of.nbytes % (8 * of.span):
        raise PassError(
            f"expected a tile of whole swizzle patterns of {8 * of.span} bytes, got {of.nbytes} "
            f"bytes; the {'K' if of.major == 'MN' else 'MN'} extent has to be a multiple of 8"
        )
    made = SmemTile(of, address)
    converter.values[op.tile] = Ring(made, of.nbytes) if isinstance(tile, tc.RingType) else made


@lower(tc.TmemTileOp)
def convert_tmem_tile(converter: Converter, op: tc.TmemTileOp) -> None:
    """Lowers to a column of an allocation."""
    if not len(op.operands):
        raise PassError("expected an allocation as operand, got none; run plan-memory first")
    tile = op.tile.type
    base = converter.record(op.operands[0], TmemBase)
    of = tile.of if isinstance(tile, tc.RingType) else tile
    made = TmemTile(of, base, integer_attribute(op, "column"))
    converter.values[op.tile] = Ring(made, of.columns) if isinstance(tile, tc.RingType) else made


@lower(tc.SlotOp)
def convert_slot(converter: Converter, op: tc.SlotOp) -> None:
    """Records the address of the slot, ``first + index * stride``."""
    ring = converter.record(op.ring, Ring)
    step = arith.MulIOp(converter.ssa(op.index), converter.constant(ring.stride)).result
    first = ring.first
    if isinstance(first, TmemTile):
        converter.values[op.slot] = replace(first, extra=step)
        return
    base = arith.AddIOp(first.address.base, step).result
    address = SharedAddress(base, first.address.offset)
    if isinstance(first, SmemTile):
        slot = converter.ssa(op.index)
        converter.values[op.slot] = SmemTile(first.type, address, slot, ring.stride)
    elif isinstance(first, StagedTile):
        converter.values[op.slot] = StagedTile(first.type, address)
    else:
        converter.values[op.slot] = Mbarrier(address)


@lower(tc.SmemPartOp)
def convert_smem_part(converter: Converter, op: tc.SmemPartOp) -> None:
    """Records the address ``tile + number * bytes of a part`` and, if the number is a constant,
    also the part's descriptor."""
    tile, part = converter.record(op.tile, SmemTile), op.part.type
    number = constant_of(op.number)
    if number is not None:
        address = tile.address.plus(number * part.nbytes)
        converter.values[op.part] = SmemTile(part, address, tile.slot, tile.stride)
        return
    step = arith.MulIOp(converter.ssa(op.number), converter.constant(part.nbytes)).result
    base = arith.AddIOp(tile.address.base, step).result
    converter.values[op.part] = SmemTile(part, SharedAddress(base, tile.address.offset))


@lower(tc.SmemTransposedOp)
def convert_smem_transposed(converter: Converter, op: tc.SmemTransposedOp) -> None:
    """Records the address of the tile as the address of its transpose; the transpose has
    descriptors of its own."""
    tile = converter.record(op.tile, SmemTile)
    kind = op.transposed.type
    converter.values[op.transposed] = SmemTile(kind, tile.address, tile.slot, tile.stride)


@lower(tc.MbarrierInitOp)
def convert_mbarrier_init(converter: Converter, op: tc.MbarrierInitOp) -> None:
    """Emits ``mbarrier.init`` of each barrier, by the first thread of the CTA."""
    bar = op.bar.type
    first = Mbarrier(SharedAddress(converter.smem, integer_attribute(op, "offset")))
    count = bar.count if isinstance(bar, tc.RingType) else 1
    arrivals = converter.constant(integer(op, "arrivals"))
    with simt.only_if(is_equal(converter, converter.thread, 0)):
        for slot in range(count):
            address = first.address.plus(slot * MBARRIER_BYTES)
            nvvm.mbarrier_init(converter.shared(address), arrivals)
    converter.values[op.bar] = (
        Ring(first, MBARRIER_BYTES) if count > 1 or isinstance(bar, tc.RingType) else first
    )


@lower(tc.TmemAllocOp)
def convert_tmem_alloc(converter: Converter, op: tc.TmemAllocOp) -> None:
    """Emits ``tcgen05.alloc`` by one warp; the address is read from shared memory after the
    barrier.

    In a CTA pair the instruction also acts on the other CTA, so relaxed arrivals first make sure
    that the other CTA has started.
    """
    base = TmemBase(
        slot=integer_attribute(op, "address_slot"),
        columns=integer(op, "columns"),
        warp=integer_attribute(op, "warp"),
        cta_group=cta_group_of(op),
    )
    if base.cta_group == PAIR:
        nvvm.cluster_barrier(relaxed=True)
    with simt.only_if(is_equal(converter, converter.warp, base.warp)):
        slot = converter.shared(SharedAddress(converter.smem, base.slot))
        nvvm.tcgen05.alloc(slot, converter.constant(base.columns), base.cta_group)
    converter.bases.append(base)
    converter.values[op.base] = base


@lower(tc.TmemRelinquishOp)
def convert_tmem_relinquish(converter: Converter, op: tc.TmemRelinquishOp) -> None:
    """Emits ``tcgen05.relinquish_alloc_permit`` by the warp that allocated."""
    if not converter.bases:
        raise PassError("expected tc.tmem_alloc before tc.tmem_relinquish, got none")
    with simt.only_if(is_equal(converter, converter.warp, converter.bases[-1].warp)):
        nvvm.tcgen05.relinquish_alloc_permit(cta_group_of(op))


@lower(tc.TmemDeallocOp)
def convert_tmem_dealloc(converter: Converter, op: tc.TmemDeallocOp) -> None:
    """Emits ``tcgen05.dealloc`` by the warp that allocated."""
    base = converter.record(op.base, TmemBase)
    if base.value is None:
        raise PassError("expected tc.cta_barrier between tc.tmem_alloc and tc.tmem_dealloc")
    columns = integer(op, "columns")
    if columns != base.columns:
        raise PassError(f"expected the {base.columns} columns of the allocation, got {columns}")
    with simt.only_if(is_equal(converter, converter.warp, base.warp)):
        address = tmem_pointer(base.value)
        nvvm.tcgen05.dealloc(address, converter.constant(columns), cta_group_of(op))


def tmem_pointer(address: ir.Value) -> ir.Value:
    """Makes a tensor-memory pointer from a 32-bit tensor-memory address."""
    return llvm.inttoptr(pointer_type(6), address)


@lower(tc.RoleOp)
def convert_role(converter: Converter, op: tc.RoleOp) -> None:
    """Emits a branch on the warp index and, if ``threads = "one"``, a branch on `elect.sync` inside
    it."""
    if converter.in_role:
        raise PassError("expected tc.role outside other roles")
    if op in converter.placed:
        converter.placed.remove(op)
        return
    warps = integers(op, "warps")
    if warps != list(range(warps[0], warps[0] + len(warps))):
        raise PassError(f"expected adjacent warps in ascending order, got {warps}")
    threads = string(op, "threads")
    body = op.operation.regions[0].blocks[0]
    position = converter.add(converter.warp, -warps[0])
    if len(warps) == 1:
        mine = is_equal(converter, converter.warp, warps[0])
    else:
        mine = arith.CmpIOp(
            arith.CmpIPredicate.ult, position, converter.constant(len(warps))
        ).result
    if LEADER in op.attributes:
        mine = arith.AndIOp(mine, converter.is_leader()).result
    for argument in body.arguments:
        converter.values[argument] = position
    converter.in_role = True
    with simt.only_if(mine):
        if threads == "one":
            with simt.only_if(nvvm.elect_sync()):
                converter.convert(body)
        elif threads == "warp":
            converter.convert(body)
        else:
            raise PassError(f'expected threads "one" or "warp", got "{threads}"')
    converter.in_role = False


@lower(tc.OneThreadOp)
def convert_one_thread(converter: Converter, op: tc.OneThreadOp) -> None:
    """Emits a branch that only the CTA's first thread takes."""
    if converter.in_role:
        raise PassError("expected tc.one_thread outside roles, which choose their thread")
    converter.in_role = True
    with simt.only_if(is_equal(converter, converter.thread, 0)):
        converter.convert(op.operation.regions[0].blocks[0])
    converter.in_role = False


@lower("memref.collapse_shape", "memref.expand_shape")
def convert_reshape(converter: Converter, op: ir.OpView) -> None:
    """Records the same contiguous tensor with another shape."""
    source = converter.record(op.operation.operands[0], GlobalTensor)
    result = op.operation.results[0]
    shape = tuple(ir.MemRefType(result.type).shape)
    converter.values[result] = replace(source, shape=shape)
