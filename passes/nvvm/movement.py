"""Lowering of TMA loads, and of accesses to tensor memory."""

from __future__ import annotations

from math import prod

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import defining, integer, integers, string
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import launch_registers
from tcir.dialect.ops.tma import EVICT, gathers, halo_of
from tcir.errors import PassError

from .converter import (
    WARP,
    Converter,
    Loading,
    Mbarrier,
    SmemTile,
    TensorMap,
    TmemTile,
    i32,
    lower,
)
from .structure import tmem_pointer

_LOAD_MODES = {
    "tiled": "tile", "im2col": "im2col", "im2col_w": "im2col_w", "im2col_w128": "im2col_w_128",
}  # fmt: skip
"""Mode of a tensor map -> NVVM's name of a load from it."""

RANK_BIT = 1 << 24
"""The lowest bit of the CTA's rank in a shared address: the other CTA of a pair has the other value
(CUTLASS, Sm100MmaPeerBitMask)."""

LANE_SHIFT = 16
"""A tensor-memory address is ``lane << 16 | column`` (PTX ISA 9.7.16.1)."""


@lower(tc.MakeTensorMapOp)
def convert_make_tensor_map(converter: Converter, op: tc.MakeTensorMapOp) -> None:
    """Lowers to a kernel parameter; the function's ``tc.params`` describes the contents of the
    tensor map."""
    converter.values[op.map] = TensorMap(converter.maps.pop(0))


@lower(tc.TmaLoadOp)
def convert_tma_load(converter: Converter, op: tc.TmaLoadOp) -> None:
    """Lowers to ``cp.async.bulk.tensor`` to the shared memory of this CTA, or of the CTAs in the
    op's mask."""
    if op.signal is None:
        raise PassError("expected an mbarrier to signal, got none; run place-barriers first")
    tile = converter.record(op.tile, SmemTile)
    row = integer(op, "row")
    offsets = [
        arith.TruncIOp(ir.IntegerType.get_signless(16), converter.ssa(offset)).result
        for offset in op.offsets
    ]
    mode = _LOAD_MODES[string(defining(op.map, tc.MakeTensorMapOp), "mode")]
    if gathers(op):
        mode = "tile_gather4"
    if mode in ("im2col_w", "im2col_w_128"):
        offsets.insert(0, converter.constant(halo_of(op), 16))
    cta_group, mask = cta_group_of(op), converter.mask(op)
    # As destination, .shared::cta is newer than sm_90, and takes no barrier of another CTA.
    own = not converter.of_warps and cta_group == 1 and mask is None
    signal = converter.shared(converter.record(op.signal, Mbarrier).address)
    if cta_group == PAIR:
        signal = leaders(converter, signal)
    nvvm.cp_async_bulk_tensor_shared_cluster_global(
        converter.shared(tile.address.plus(row * tile.type.span), 3 if own else 7),
        converter.record(op.map, TensorMap).pointer,
        [converter.ssa(coordinate) for coordinate in op.coords],
        signal,
        offsets,
        mode=mode,
        cta_group=cta_group,
        more=(mask, _policy(converter, defining(op.map, tc.MakeTensorMapOp))),
    )


def _policy(converter: Converter, tensor_map: tc.MakeTensorMapOp) -> ir.Value | None:
    """The L2 cache policy of the loads of a map, created once at the kernel's entry."""
    if EVICT not in tensor_map.attributes:
        return None
    name = f"createpolicy.fractional.L2::evict_{string(tensor_map, EVICT)}.b64"
    if name not in converter.at_entry:
        with ir.InsertionPoint.after(converter.lane.owner):
            made = llvm.inline_asm(ir.IntegerType.get_signless(64), [], f"{name} $0, 1.0;", "=l")
        converter.at_entry[name] = made.results[0]
    return converter.at_entry[name]


def leaders(converter: Converter, pointer: ir.Value) -> ir.Value:
    """Maps an address in this CTA's shared memory to the same address in the shared memory of the
    pair's leader."""
    address = llvm.ptrtoint(i32(), pointer)
    even = arith.AndIOp(address, converter.constant(~RANK_BIT)).result
    return llvm.inttoptr(pointer.type, even)


@lower(tc.TmemLdOp)
def convert_tmem_ld(converter: Converter, op: tc.TmemLdOp) -> None:
    """Lowers to ``tcgen05.ld.32x32b`` of the warp's sub-partition; each thread gets a row of N
    columns."""
    rows, columns = ir.VectorType(op.value.type).shape
    if rows != WARP or columns & (columns - 1) or not 1 <= columns <= 128:
        raise PassError(
            f"expected 32 rows and a power of two of at most 128 columns, got {rows} x {columns} "
            "(PTX ISA 9.7.16.8)"
        )
    address = quarter_address(converter, op.source, op.quarter, op.column)
    # An instruction has fewer registers than a thread at launch, whatever its share is later
    # (ptxas C7602).
    parts = 2 if columns >= launch_registers(threads_around(op)) else 1
    each = columns // parts
    raw_type = ir.VectorType.get([each], i32()) if each > 1 else i32()
    loaded = [
        nvvm.tcgen05.ld(raw_type, tmem_pointer(converter.add(address, part * each)))
        for part in range(parts)
    ]
    words = [word for part in loaded for word in _words(converter, part)]
    raw = converter.vector(words) if parts > 1 else loaded[0]
    converter.values[op.value] = Loading(raw)
    converter.pending.append(op.value)


@lower(tc.TmemStOp)
def convert_tmem_st(converter: Converter, op: tc.TmemStOp) -> None:
    """Lowers to ``tcgen05.st.32x32b`` to the warp's sub-partition; each thread stores a row of N
    columns."""
    columns = ir.VectorType(op.value.type).shape[1]
    kind = ir.VectorType.get([columns], i32()) if columns > 1 else i32()
    pointer = tmem_pointer(quarter_address(converter, op.target, op.quarter, op.column))
    nvvm.tcgen05.st(pointer, llvm.bitcast(kind, converter.ssa(op.value)))


def threads_around(op: ir.OpView) -> int:
    """Number of threads of a CTA of the kernel that contains an op."""
    around = op.operation.parent
    while "tc.block" not in around.attributes:
        around = around.parent
    return prod(integers(around.opview, "tc.block"))


def quarter_address(
    converter: Converter, tile: ir.Value, quarter: ir.Value, column: ir.Value
) -> ir.Value:
    """The tensor-memory address of a column in the first lane of a sub-partition."""
    lane = arith.ShLIOp(
        arith.MulIOp(converter.ssa(quarter), converter.constant(WARP)).result,
        converter.constant(LANE_SHIFT),
    ).result
    base = converter.tmem_columns(converter.record(tile, TmemTile))
    place = arith.AddIOp(base, converter.ssa(column)).result
    return arith.AddIOp(place, lane).result


@lower(tc.TmemWaitOp)
def convert_tmem_wait(converter: Converter, op: tc.TmemWaitOp) -> None:
    """Lowers to ``tcgen05.wait::ld``, with the loaded registers as operands and results.

    LLVM would not order a plain wait after the load and before the uses: using a loaded register is
    not a memory access, so the back end could move the use before the wait. Therefore the wait is
    inline assembly with these registers as inputs and outputs.
    """
    kind = string(op, "kind")
    if kind != "ld" or not converter.pending:
        nvvm.tcgen05.wait("load" if kind == "ld" else "store")
        return
    loads = [(value, converter.values[value].raw) for value in converter.pending]
    converter.pending.clear()
    words = [word for _, raw in loads for word in _words(converter, raw)]
    count = len(words)
    single = count == 1
    ready = llvm.inline_asm(
        i32() if single else ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>"),
        words,
        "tcgen05.wait::ld.sync.aligned;",
        ",".join(["=r"] * count + [str(index) for index in range(count)]),
        has_side_effects=True,
    ).result
    done = [ready] if single else [llvm.extractvalue(i32(), ready, i) for i in range(count)]
    for value, raw in loads:
        mine = [done.pop(0) for _ in _shape(raw)]
        row = converter.vector(mine)
        element = ir.VectorType(value.type).element_type
        row_type = ir.VectorType.get([len(mine)], element)
        converter.values[value] = llvm.bitcast(row_type, row)


def _shape(raw: ir.Value) -> range:
    return range(raw.type.shape[0] if isinstance(raw.type, ir.VectorType) else 1)


def _words(converter: Converter, raw: ir.Value) -> list[ir.Value]:
    if not isinstance(raw.type, ir.VectorType):
        return [raw]
    return converter.elements(raw)
