"""The ring of a warp-level main loop: its tiles become slots that copies fill several steps
ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import SMEM_TILE_ALIGNMENT
from tcir.dialect.operation import Op
from tcir.errors import InputError
from tcir.passes.emit import index
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import find_kernels, trip_count, walk_body
from tcir.passes.emit.limits import round_up
from tcir.passes.warp.loops import clone_all, loops_with, operands_of, slice_of
from tcir.target import TARGETS

MOST_STAGES = 4
"""Three tiles in flight cover the latency of memory; more only lengthen the prologue."""
LEAST_STAGES = 2
COPIES = (tc.CpAsyncOp, tc.TmaLoadOp)
"""Ops that fill the tiles of a main loop."""


def check_stages(stages: int) -> None:
    """Rejects a number of stages with which no slot can be filled while another slot is read."""
    if stages and stages < LEAST_STAGES:
        raise InputError(
            f"expected stages of at least {LEAST_STAGES}, or 0 to choose, got {stages}: "
            "one slot is read while another is filled; smallest accepted: stages=2"
        )


def pipeline_kernels(
    module: ir.Module, name: str, kind: type[Op], stages: int, ring: type[RingLoop]
) -> None:
    """Rebuilds the main loops whose copies are ops of class `kind`; other loops are unchanged."""
    for kernel in find_kernels(module, name, "tile-matmul-warp"):
        copies = [op for op in walk_body(kernel) if isinstance(op, COPIES)]
        if copies and not any(isinstance(op, kind) for op in copies):
            continue
        loops = loops_with(kernel, kind)
        if len(loops) != 1 or "tc.async" in kernel.attributes:
            raise match_failure(
                kernel, f"expected one sequential loop that copies tiles, got {len(loops)}"
            )
        with loops[0].location:
            ring(kernel, loops[0], kind, stages).build()
        kernel.attributes["tc.async"] = ir.UnitAttr.get()


@dataclass(frozen=True)
class Fill:
    """The copies of step `step` of a tile into `slot`. place: values of the tile, if it is not the
    tile that the loop computes"""

    step: Index
    slot: ir.Value
    place: Mapping


class RingLoop(ABC):
    """One main loop. Subclasses define how the completion of copies is signalled.

    In a loop over the tiles of a CTA the ring continues: the last iterations of a tile fill slots
    for the first steps of the next tile.
    """

    def __init__(self, kernel: func.FuncOp, loop: scf.ForOp, kind: type[Op], stages: int) -> None:
        self.loop = loop
        self.trips = trip_count(loop)
        block = loop.body
        self.tiles = [op for op in block if isinstance(op, tc.SmemTileOp)]
        self.copies = [op for op in block if isinstance(op, kind)]
        tiles = [tile.tile for tile in self.tiles]
        used = [v for op in self.copies for v in op.operation.operands if v not in tiles]
        self.places = slice_of(used, block)
        self.tile_loop = _tile_loop(loop)
        self.before: Index = 0
        """Steps of the CTA's earlier tiles, modulo the period."""
        moved = [op.operation for op in (*self.tiles, *self.copies, *self.places)]
        *ops, self.end = block
        self.compute = [op for op in ops if op.operation not in moved]
        self.stages = stages or _choose_stages(kernel, self.tiles)
        if self.tile_loop is not None:
            self.stages = max(LEAST_STAGES, min(self.stages, self.trips + 1))

    @abstractmethod
    def begin(self) -> None:
        """Emits the setup code before the first copy."""

    @abstractmethod
    def fill(self, copy: Fill | None) -> None:
        """Emits the copies of a step; `copy` is None if there is nothing left to copy."""

    @abstractmethod
    def ready(self, step: Index) -> None:
        """Emits the wait until the copies of `step` are complete and no warp reads the slot that is
        filled next."""

    def build(self) -> None:
        """Replaces the loop."""
        loop, ahead = self.loop, self.stages - 1
        steady = max(self.trips - ahead, 0)
        with ir.InsertionPoint(self.tile_loop or loop):
            self.rings = [
                tc.SmemTileOp(tc.RingType.build(self.stages, t.tile.type)).tile for t in self.tiles
            ]
            self.begin()
            place = self._place(0)
            for step in range(ahead):
                self.fill(Fill(step, self.slot_of(step), place) if step < self.trips else None)
        with ir.InsertionPoint(loop):
            if self.tile_loop is not None:
                self._begin_tile(self.tile_loop)
            totals = list(loop.initArgs)
            if steady:
                totals = self._loop(0, steady, totals, self._fill_later)
            last = self._fill_nothing if self.tile_loop is None else self._fill_next_tile
            totals = self._loop(steady, self.trips, totals, last)
        for old, new in zip(loop.results, totals, strict=True):
            old.replace_all_uses_with(new)
        loop.operation.erase()

    def _begin_tile(self, tiles: scf.ForOp) -> None:
        """Emits the ring's state at the start of a tile, and the place of the next tile."""
        turn = tiles.induction_variable
        self.before = index.mul(turn, self.trips % self.period)
        following = index.add(turn, 1)
        self.following = self._place(following)
        self.is_followed = arith.cmpi(
            arith.CmpIPredicate.ult, index.value(following), tiles.upperBound
        )

    def _fill_later(self, step: Index) -> None:
        later = index.add(step, self.stages - 1)
        self.fill(Fill(later, self.slot_of(later), {}))

    def _fill_nothing(self, step: Index) -> None:
        self.fill(None)

    def _fill_next_tile(self, step: Index) -> None:
        later = index.add(step, self.stages - 1)
        slot, first = self.slot_of(later), index.sub(later, self.trips)
        branch = scf.IfOp(self.is_followed)
        with ir.InsertionPoint(branch.then_block):
            self.fill(Fill(first, slot, self.following))
            scf.YieldOp([])

    @property
    def period(self) -> int:
        """Number of steps after which the slots and the phases of their barriers repeat."""
        return 2 * self.stages

    def _place(self, turn: Index) -> Mapping:
        """Values of the CTA's tile number `turn` that copies use; emits their computation."""
        if self.tile_loop is None:
            return {}
        place: Mapping = {self.tile_loop.induction_variable: index.value(turn)}
        used = [v for op in (*self.places, *self.copies) for v in operands_of(op)]
        clone_all(slice_of(used, self.tile_loop.body), place)
        return place

    def slot_of(self, step: Index) -> ir.Value:
        """The slot of `step`, where steps are counted from the first step of this tile."""
        return index.value(index.rem(index.add(self.before, step), self.stages))

    def phase_of(self, step: Index) -> ir.Value:
        """Number of earlier fills of the slot of `step`, modulo 2."""
        return index.value(index.rem(index.div(index.add(self.before, step), self.stages), 2))

    def at(self, step: Index, slot: ir.Value) -> Mapping:
        """Values of iteration `step`: its number and its slots."""
        mapping: Mapping = {self.loop.induction_variable: index.value(step)}
        for tile, ring in zip(self.tiles, self.rings, strict=True):
            mapping[tile.tile] = tc.SlotOp(ring, slot, tile.tile.type).slot
        return mapping

    def _loop(
        self, start: int, end: int, totals: list[ir.Value], fill: Callable[[Index], None]
    ) -> list[ir.Value]:
        """Iterations `start` to `end`; fill: emits the copies that one of them issues."""
        new = scf.ForOp(index.value(start), index.value(end), index.value(1), totals)
        with ir.InsertionPoint(new.body):
            step = new.induction_variable
            self.ready(step)
            fill(step)
            mapping = self.at(step, self.slot_of(step))
            mapping |= dict(zip(self.loop.inner_iter_args, new.inner_iter_args, strict=True))
            clone_all(self.compute, mapping)
            clone(self.end, mapping)
        return list(new.results)


def _tile_loop(loop: scf.ForOp) -> scf.ForOp | None:
    """The loop over a CTA's tiles around its main loop, if there is one."""
    parent = loop.operation.parent.opview
    return parent if isinstance(parent, scf.ForOp) else None


def _choose_stages(kernel: func.FuncOp, tiles: list[tc.SmemTileOp]) -> int:
    room = TARGETS[string(kernel, "tc.target")].smem_per_cta
    stage = sum(round_up(t.tile.type.nbytes, SMEM_TILE_ALIGNMENT) for t in tiles)
    return max(LEAST_STAGES, min(MOST_STAGES, room // stage))
