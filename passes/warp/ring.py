"""The ring of a warp-level main loop: tiles become slots that copies fill several steps ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import SMEM_TILE_ALIGNMENT
from tcir.dialect.operation import Op
from tcir.errors import InputError
from tcir.passes.build import index
from tcir.passes.build.clone import Mapping, clone
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.index import Index
from tcir.passes.build.kernel_ops import find_kernels, trip_count, walk_body
from tcir.passes.build.limits import round_up
from tcir.passes.warp.loops import clone_all, loops_with, slice_of
from tcir.target import TARGETS

MOST_STAGES = 4
"""Three tiles in flight cover the latency of memory; more only lengthen the prologue."""
LEAST_STAGES = 2
COPIES = (tc.CpAsyncOp, tc.TmaLoadOp)
"""Ops that fill the tiles of a main loop."""


def check_stages(stages: int) -> None:
    """Rejects an option that leaves no slot to fill while another is read."""
    if stages and stages < LEAST_STAGES:
        raise InputError(
            f"expected stages of at least {LEAST_STAGES}, or 0 to choose, got {stages}: "
            "one slot is read while another is filled; smallest accepted: stages=2"
        )


def pipeline_kernels(
    module: ir.Module, name: str, kind: type[Op], stages: int, ring: type[RingLoop]
) -> None:
    """Rebuilds the main loops whose copies are ops of class `kind`; others are unchanged."""
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


class RingLoop(ABC):
    """One main loop; subclasses define how completion of copies is signalled."""

    def __init__(self, kernel: func.FuncOp, loop: scf.ForOp, kind: type[Op], stages: int) -> None:
        self.loop = loop
        self.trips = trip_count(loop)
        block = loop.body
        self.tiles = [op for op in block if isinstance(op, tc.SmemTileOp)]
        self.copies = [op for op in block if isinstance(op, kind)]
        tiles = [tile.tile for tile in self.tiles]
        used = [v for op in self.copies for v in op.operation.operands if v not in tiles]
        self.places = slice_of(used, block)
        moved = [op.operation for op in (*self.tiles, *self.copies, *self.places)]
        *ops, self.end = block
        self.compute = [op for op in ops if op.operation not in moved]
        self.stages = stages or _choose_stages(kernel, self.tiles)

    @abstractmethod
    def begin(self) -> None:
        """Emits the set-up before the first copy."""

    @abstractmethod
    def fill(self, step: Index | None) -> None:
        """Emits the copies of `step` into its slot; None if there is nothing left to copy."""

    @abstractmethod
    def ready(self, step: Index) -> None:
        """Waits until the copies of `step` are complete and no warp reads the slot filled next."""

    def build(self) -> None:
        """Replaces the loop."""
        loop, ahead = self.loop, self.stages - 1
        with ir.InsertionPoint(loop):
            self.rings = [
                tc.SmemTileOp(tc.RingType.build(self.stages, t.tile.type)).tile for t in self.tiles
            ]
            self.begin()
            for step in range(ahead):
                self.fill(step if step < self.trips else None)
            steady = max(self.trips - ahead, 0)
            totals = list(loop.initArgs)
            if steady:
                totals = self._loop(0, steady, totals, ahead)
            totals = self._loop(steady, self.trips, totals, None)
        for old, new in zip(loop.results, totals, strict=True):
            old.replace_all_uses_with(new)
        loop.operation.erase()

    def at(self, step: Index) -> tuple[Mapping, ir.Value]:
        """Values of iteration `step`, its number and its slots; and the slot number."""
        mapping: Mapping = {self.loop.induction_variable: index.value(step)}
        slot = index.value(index.rem(step, self.stages))
        for tile, ring in zip(self.tiles, self.rings, strict=True):
            mapping[tile.tile] = tc.SlotOp(ring, slot, tile.tile.type).slot
        return mapping, slot

    def _loop(
        self, start: int, end: int, totals: list[ir.Value], ahead: int | None
    ) -> list[ir.Value]:
        new = scf.ForOp(index.value(start), index.value(end), index.value(1), totals)
        with ir.InsertionPoint(new.body):
            step = new.induction_variable
            self.ready(step)
            self.fill(None if ahead is None else index.add(step, ahead))
            mapping, _ = self.at(step)
            mapping |= dict(zip(self.loop.inner_iter_args, new.inner_iter_args, strict=True))
            clone_all(self.compute, mapping)
            clone(self.end, mapping)
        return list(new.results)


def _choose_stages(kernel: func.FuncOp, tiles: list[tc.SmemTileOp]) -> int:
    room = TARGETS[string(kernel, "tc.target")].smem_per_cta
    stage = sum(round_up(t.tile.type.nbytes, SMEM_TILE_ALIGNMENT) for t in tiles)
    return max(LEAST_STAGES, min(MOST_STAGES, room // stage))
