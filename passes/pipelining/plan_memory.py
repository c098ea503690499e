"""plan-memory: assigns addresses in shared memory and tensor memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR, kernel_cta_group
from tcir.dialect.limits import SMEM_BYTES, TMEM_COLUMNS
from tcir.dialect.operation import traits_of
from tcir.dialect.ops.memory import SHARES, first_columns
from tcir.dialect.types import one_of, shared_bytes, slots, tensor_columns
from tcir.dialect.warp_map import warp_map_of
from tcir.passes.emit.builders import i64, of_pair
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import (
    body,
    find_kernels,
    walk_body,
)
from tcir.passes.emit.limits import round_up, tmem_allocation
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import DEFAULT_TARGET

ADDRESS_BYTES = 4


@register_pass
@dataclass(frozen=True)
class PlanMemory(Pass):
    """Assigns byte offsets to tiles and mbarriers, and columns of one tensor-memory allocation.

    Before::

        %ring = "tc.smem_tile"() : () -> !tc.ring<2, !tc.smem<…>>
        %d = "tc.tmem_tile"() : () -> !tc.tmem<…>
        %full = "tc.mbarrier_init"() {arrivals = 1}
        "tc.fence"() {kind = "mbarrier_init"}; "tc.cta_barrier"()
        …
        "tc.cta_barrier"()

    After (function attributes ``tc.smem_bytes``, ``tc.tmem_columns``)::

        %ring = "tc.smem_tile"() {offset = 0}
        %full = "tc.mbarrier_init"() {arrivals = 1, offset = 81920}
        "tc.fence"() {kind = "mbarrier_init"}
        %base = "tc.tmem_alloc"() {columns = 128, address_slot = 81960, warp = 5}
        "tc.tmem_relinquish"() {warp = 5}
        "tc.cta_barrier"()
        %d = "tc.tmem_tile"(%base) {column = 0}
        …
        "tc.cta_barrier"()
        "tc.tmem_dealloc"(%base) {columns = 128, warp = 5}

    Tiles in tensor memory that have the same number ``shares`` get overlapping columns. Tiles in
    shared memory start at multiples of 1024 bytes, where swizzle patterns start; the slots of a
    ring follow one another. ``tcgen05.alloc`` writes the address to ``address_slot``. Preserves
    everything else.
    """

    name: ClassVar[str] = "plan-memory"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "place-barriers"):
            barriers = [op for op in body(kernel) if isinstance(op, _BARRIERS)]
            if len(barriers) < 2:
                raise match_failure(
                    kernel,
                    "expected a CTA barrier after the set-up and one before the end, got "
                    f"{len(barriers)}; run place-barriers first",
                )
            if "tc.smem_bytes" in kernel.attributes:
                raise match_failure(
                    kernel, "expected a kernel without planned memory, got tc.smem_bytes"
                )
            address = _place_shared(kernel)
            _place_columns(kernel, address, barriers)


_BARRIERS = tc.CtaBarrierOp | tc.ClusterBarrierOp


def _place_shared(kernel: func.FuncOp) -> int:
    """Sets the offsets; returns the offset of the tensor-memory address."""
    objects = [op for op in walk_body(kernel) if traits_of(op).in_shared]
    end = 0
    for op in sorted(objects, key=lambda op: -traits_of(op).in_shared):
        end = round_up(end, traits_of(op).in_shared)
        op.attributes["offset"] = i64(end)
        end += op.nbytes
    address, end = end, end + ADDRESS_BYTES
    if end > SMEM_BYTES:
        tiles = [op for op in objects if isinstance(op, tc.SmemTileOp)]
        parts = ", ".join(
            f"{slots(t.tile.type)} x {shared_bytes(one_of(t.tile.type))} bytes" for t in tiles
        )
        raise match_failure(
            tiles[0] if tiles else kernel,
            f"expected at most {SMEM_BYTES} bytes of shared memory, got {end} (tiles: {parts}; a "
            f"CTA of {DEFAULT_TARGET.name} has 227 KB); take fewer stages or a smaller n-tile "
            "(smallest accepted: stages=1, n-tile=16)",
        )
    kernel.attributes["tc.smem_bytes"] = i64(end)
    return address


def _place_columns(kernel: func.FuncOp, address: int, barriers: list[ir.OpView]) -> None:
    tiles = [op for op in walk_body(kernel) if isinstance(op, tc.TmemTileOp)]
    if not tiles and not warp_map_of(kernel).allocates:
        return
    if not tiles:
        raise match_failure(kernel, "expected a kernel with tiles in tensor memory, got none")
    places, total = first_columns(tiles)
    if total > TMEM_COLUMNS:
        parts = " + ".join(str(tensor_columns(tile.tile.type)) for tile in tiles)
        raise match_failure(
            tiles[0],
            f"expected at most {TMEM_COLUMNS} columns of tensor memory, got {total} ({parts}; "
            "PTX ISA 9.7.16.1); take fewer stages or a smaller n-tile "
            "(smallest accepted: stages=1, n-tile=16)",
        )
    columns = tmem_allocation(total)
    warp = i64(warp_map_of(kernel).allocating_warp)
    with ir.InsertionPoint(barriers[0]), tiles[0].location:
        alloc = tc.TmemAllocOp(i64(columns))
        alloc.attributes["address_slot"], alloc.attributes["warp"] = i64(address), warp
        relinquish = tc.TmemRelinquishOp()
        relinquish.attributes["warp"] = warp
    ops = body(kernel)
    behind = ops[ops.index(barriers[0]) + 1]
    for tile, column in zip(tiles, places, strict=True):
        with ir.InsertionPoint(behind), tile.location:
            placed = tc.TmemTileOp(tile.tile.type, base=alloc.base)
        placed.attributes["column"] = i64(column)
        if SHARES in tile.attributes:
            placed.attributes[SHARES] = tile.attributes[SHARES]
        tile.tile.replace_all_uses_with(placed.tile)
        tile.operation.erase()
    with ir.InsertionPoint(body(kernel)[-1]), barriers[-1].location:
        dealloc = tc.TmemDeallocOp(alloc.base, i64(columns))
        dealloc.attributes["warp"] = warp
    if kernel_cta_group(kernel) == PAIR:
        for op in (alloc, relinquish, dealloc):
            of_pair(op)
    kernel.attributes["tc.tmem_columns"] = i64(columns)
