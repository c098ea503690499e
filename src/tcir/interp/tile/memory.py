"""Rules of the ops that create or select memory: tiles, rings, barriers, allocations, views of
buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, optional_integer
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import MBARRIER_BYTES
from tcir.dialect.types import slots, tensor_columns
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute, meet
from tcir.interp.tile.places import layout_of
from tcir.interp.tile.staged import staged_layout
from tcir.interp.tile.values import Mbarrier, MemRef, Ring, SmemTile, StagedTile, TmemTile
from tcir.interp.types import shape_of


def _object(type_: ir.Type, build: Callable[[Any, int], Any]) -> Any:
    """Returns one object, or a ring of objects; `build(type, i)` makes the i-th."""
    if isinstance(type_, tc.RingType):
        return Ring(tuple(build(type_.of, i) for i in range(type_.count)))
    return build(type_, 0)


def _tile(type_: ir.Type, base: int) -> SmemTile | StagedTile:
    if isinstance(type_, tc.StagedType):
        return StagedTile(base, staged_layout(type_))
    return SmemTile(base, layout_of(type_))


@execute(tc.SmemTileOp)
def smem_tile(compiler: Compiler, op: tc.SmemTileOp) -> Step:
    result, base = compiler.result(op), compiler.places.shared[op.operation]
    type_ = op.operation.results[0].type
    fresh, size = op.operation not in compiler.places.planned, op.nbytes

    @cache
    def tiles(start: int) -> Any:
        return _object(type_, lambda t, i: _tile(t, start + i * t.nbytes))

    def make_tile(frame: Frame) -> None:
        start = frame.cta.shared + base
        if fresh and frame.elected():
            frame.cta_run.forget_shared(frame, start, size)
        frame.values[result] = tiles(start)

    return make_tile


@execute(tc.TmemTileOp)
def tmem_tile(compiler: Compiler, op: tc.TmemTileOp) -> Step:
    result, column = compiler.result(op), compiler.places.columns[op.operation]
    type_ = op.operation.results[0].type
    base = compiler.operands(op)
    fresh, columns = op.operation not in compiler.places.planned, tensor_columns(type_)
    one = type_.of if isinstance(type_, tc.RingType) else type_
    size, element, width = one.columns, str(one.element), one.shape[1]

    def make_tile(frame: Frame) -> None:
        origin = frame.values[base[0]] if base else frame.cta_run.own_origin
        frame.values[result] = _object(
            type_, lambda _, i: TmemTile(origin, column + i * size, size, element, width)
        )
        if fresh and frame.elected():
            frame.cta_run.forget_tmem(frame, origin(frame) + column, columns)

    return make_tile


def _executing_warp(compiler: Compiler, op: ir.OpView) -> int:
    """The warp of a CTA-wide op; the allocation's warp also relinquishes and frees."""
    warp = optional_integer(op, "warp")
    return compiler.allocation_warp if warp is None else warp


@execute(tc.TmemAllocOp)
def tmem_alloc(compiler: Compiler, op: tc.TmemAllocOp) -> Step:
    result, site = compiler.result(op), compiler.site(op)
    columns, slot = integer(op, "columns"), integer(op, "address_slot")
    warp = optional_integer(op, "warp") or 0
    compiler.allocation_warp = warp
    cta_group = cta_group_of(op)

    def allocate(frame: Frame) -> Blocking:
        if cta_group == PAIR:
            yield from meet(frame, site, relaxed=True)
        if frame.elected(warp):
            place = frame.cta.shared + slot
            yield from frame.agent.tmem.alloc(place, columns, cta_group, site=site)
        known: dict[str, int] = {}

        def origin(frame: Frame) -> int:
            # Every warp reads the address from shared memory, when it first needs it.
            if "column" not in known:
                place = frame.cta.shared + slot
                known["column"] = frame.cta_run.read_word(frame, place, site)
            return known["column"]

        frame.values[result] = origin

    return allocate


@execute(tc.TmemRelinquishOp)
def tmem_relinquish(compiler: Compiler, op: tc.TmemRelinquishOp) -> Step:
    site, warp, cta_group = compiler.site(op), _executing_warp(compiler, op), cta_group_of(op)

    def relinquish(frame: Frame) -> None:
        if frame.elected(warp):
            frame.agent.tmem.relinquish(cta_group, site=site)

    return relinquish


@execute(tc.TmemDeallocOp)
def tmem_dealloc(compiler: Compiler, op: tc.TmemDeallocOp) -> Step:
    (base,) = compiler.operands(op)
    site, warp, columns = compiler.site(op), _executing_warp(compiler, op), integer(op, "columns")

    def deallocate(frame: Frame) -> None:
        if frame.elected(warp):
            frame.agent.tmem.dealloc(frame.values[base](frame), columns, site=site)

    def deallocate_pair(frame: Frame) -> Blocking:
        if frame.elected(warp):
            column = frame.values[base](frame)
            yield from frame.agent.tmem.pair_dealloc(column, columns, site=site)

    return deallocate if cta_group_of(op) == 1 else deallocate_pair


@execute(tc.MbarrierInitOp)
def mbarrier_init(compiler: Compiler, op: tc.MbarrierInitOp) -> Step:
    result, base = compiler.result(op), compiler.places.shared[op.operation]
    site, arrivals = compiler.site(op), integer(op, "arrivals")
    count = slots(op.operation.results[0].type)
    type_ = op.operation.results[0].type

    @cache
    def barriers(start: int) -> Any:
        return _object(type_, lambda _, i: Mbarrier(start + MBARRIER_BYTES * i))

    def initialise(frame: Frame) -> None:
        start = frame.cta.shared + base
        if frame.elected():
            for i in range(count):
                frame.agent.mbarrier.init(start + MBARRIER_BYTES * i, arrivals, site=site)
        frame.values[result] = barriers(start)

    return initialise


@execute(tc.SlotOp)
def slot(compiler: Compiler, op: tc.SlotOp) -> Step:
    ring, index = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def pick(frame: Frame) -> None:
        v = frame.values
        slots = v[ring].slots
        v[result] = slots[frame.cta_run.below("a slot", v[index], len(slots), site)]

    return pick


@execute(tc.SmemPartOp)
def smem_part(compiler: Compiler, op: tc.SmemPartOp) -> Step:
    tile, number = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)
    layout = layout_of(op.part.type)
    parts = op.tile.type.shape[0] // layout.mn

    def pick(frame: Frame) -> None:
        v = frame.values
        part = frame.cta_run.below("a part", v[number], parts, site)
        v[result] = SmemTile(v[tile].base + part * layout.nbytes, layout)

    return pick


@execute(tc.SmemTransposedOp)
def smem_transposed(compiler: Compiler, op: tc.SmemTransposedOp) -> Step:
    (tile_,) = compiler.operands(op)
    layout = layout_of(op.transposed.type)
    return compiler.assigns(op, lambda frame: SmemTile(frame.values[tile_].base, layout))


@execute("memref.collapse_shape", "memref.expand_shape", "memref.cast")
def memref_reshape(compiler: Compiler, op: ir.OpView) -> Step:
    (source,), result = compiler.operands(op)[:1], compiler.result(op)
    shape, site = shape_of(op.operation.results[0].type), compiler.site(op)

    def reshape(frame: Frame) -> None:
        view: MemRef = frame.values[source]
        if np.prod(view.shape) != np.prod(shape):
            raise frame.cta_run.error(
                "bad-view", f"expected {list(view.shape)} regrouped, got {list(shape)}", site
            )
        frame.values[result] = replace(view, shape=shape)

    return reshape
