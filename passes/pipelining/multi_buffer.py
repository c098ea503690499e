"""multi-buffer: turns the tiles that a loop iteration makes into rings of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import optional_integer
from tcir.dialect.limits import SMEM_BYTES, SMEM_TILE_ALIGNMENT, TMEM_COLUMNS
from tcir.dialect.ops.memory import first_columns
from tcir.dialect.types import shared_bytes
from tcir.dialect.walk import walk
from tcir.errors import InputError
from tcir.passes.emit import index
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import (
    CTAS_PER_SM,
    body,
    find_kernels,
    iteration,
    iterations,
    walk_body,
)
from tcir.passes.emit.limits import BARRIER_BYTES, round_up
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import DEFAULT_TARGET

MOST_STAGES = 8
"""More loads in flight gain nothing: 8 x 16 KB per SM cover the latency of HBM."""

ACCUMULATORS = 2
"""Accumulators: one is read while the next is computed; a third would wait for the same
epilogue."""


@register_pass
@dataclass(frozen=True)
class MultiBuffer(Pass):
    """Hoists the tiles that a loop body creates out of the loop and makes `stages` copies of each.

    stages: slots of every ring; 0 chooses as many as fit with two CTAs on the SM (the epilogue of
        one overlaps the loads of the other) or, if these are fewer than two slots, as many as fit
        with one CTA; at most 8, and at most as many as the loop has iterations in all. A kernel
        with the attribute ``tc.ctas_per_sm = 1`` has the SM to itself
    acc_stages: slots of the rings of a loop around such a loop (accumulators); 0 chooses two, so
        that the epilogue of one tile overlaps the mma of the next. It chooses one if there is one
        tile, or if two loaded tiles would leave fewer than two stages with two CTAs on the SM

    Before::

        scf.for %i = … {
          %a = "tc.smem_tile"() : () -> !tc.smem<…>
          %t = "tc.tmem_tile"() : () -> !tc.tmem<…>

    After::

        %ring_a = "tc.smem_tile"() : () -> !tc.ring<4, !tc.smem<…>>
        %ring_t = "tc.tmem_tile"() : () -> !tc.ring<4, !tc.tmem<…>>
        scf.for %i = … {
          %slot = arith.remui %i, %c4
          %a = "tc.slot"(%ring_a, %slot)
          %t = "tc.slot"(%ring_t, %slot)

    In a nested loop the slot follows from the number of the iteration, counted over all executions
    of the loop, so that a ring continues at the slot after the last one that the previous tile
    used. A remark states the memory that the slots take. Preserves what the program computes: a
    tile's contents never live longer than its iteration.
    """

    name: ClassVar[str] = "multi-buffer"
    stages: int = 0
    acc_stages: int = 0

    def __post_init__(self) -> None:
        for option, count in (("stages", self.stages), ("acc-stages", self.acc_stages)):
            if count < 0:
                raise InputError(
                    f"expected {option} of at least 1, or 0 to choose, got {count}; "
                    f"smallest accepted: {option}=1"
                )

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "a tiling pass"):
            for top in body(kernel):
                for op in list(walk(top)):
                    tiles = _tiles_of(op)
                    if tiles:
                        self._hoist(kernel, top, op, tiles)

    def _hoist(
        self, kernel: func.FuncOp, top: ir.OpView, loop: scf.ForOp, tiles: list[ir.OpView]
    ) -> None:
        inside = [inner for inner in list(walk(loop))[1:] if _tiles_of(inner)]
        if inside:
            most = self.acc_stages or (1 if _crowds(kernel, inside[0], tiles) else ACCUMULATORS)
            count = min(most, iterations(loop))
        else:
            stage, fixed = _footprints(kernel, tiles)
            count = self.stages or _choose_stages(kernel, loop, stage, fixed)
            _state(loop, count, stage, fixed)
            _check_stages(loop, count, stage, fixed)
        with ir.InsertionPoint(tiles[0]), tiles[0].location:
            slot = index.value(index.rem(iteration(loop), count))
        for tile in tiles:
            kind = tile.tile.type
            with ir.InsertionPoint(top), tile.location:
                ring = type(tile)(tc.RingType.build(count, kind)).tile
            with ir.InsertionPoint(tile), tile.location:
                tile.tile.replace_all_uses_with(tc.SlotOp(ring, slot, kind).slot)
            tile.operation.erase()


def _tiles_of(op: ir.OpView) -> list[ir.OpView]:
    if not isinstance(op, scf.ForOp):
        return []
    return [t for t in op.body if isinstance(t, tc.SmemTileOp | tc.TmemTileOp)]


def _footprints(kernel: func.FuncOp, tiles: list[ir.OpView]) -> tuple[_Footprint, _Footprint]:
    """Memory of a slot of `tiles`, and of everything else in the kernel."""
    every = [t for t in walk_body(kernel) if isinstance(t, tc.SmemTileOp | tc.TmemTileOp)]
    fixed = _Footprint.of([t for t in every if t not in tiles])
    masks = sum(op.nbytes for op in walk_body(kernel) if isinstance(op, tc.LaneMasksOp))
    return _Footprint.of(tiles), _Footprint(fixed.bytes + masks, fixed.columns)


def _crowds(kernel: func.FuncOp, ring: scf.ForOp, tiles: list[ir.OpView]) -> bool:
    """Whether two slots of `tiles`, in a loop around `ring`, would leave it fewer than two stages
    where one slot leaves two."""
    more, (stage, fixed) = _Footprint.of(tiles), _footprints(kernel, _tiles_of(ring))
    ctas = (1,) if optional_integer(kernel, CTAS_PER_SM) == 1 else (2,)
    one, two = (
        choose_stages(iterations(ring), stage.bytes, shared, stage.columns, fixed.columns, ctas)
        for shared in (fixed.bytes, fixed.bytes + more.bytes)
    )
    return not more.columns and two < 2 <= one


def _choose_stages(
    kernel: func.FuncOp, loop: scf.ForOp, stage: _Footprint, fixed: _Footprint
) -> int:
    ctas = (1,) if optional_integer(kernel, CTAS_PER_SM) == 1 else (2, 1)
    trips = iterations(loop)
    return choose_stages(trips, stage.bytes, fixed.bytes, stage.columns, fixed.columns, ctas)


def _state(loop: scf.ForOp, count: int, stage: _Footprint, fixed: _Footprint) -> None:
    """The remark with the sum that the slots of a ring in shared memory come to."""
    if not stage.bytes:
        return
    total = count * stage.bytes + fixed.bytes + BARRIER_BYTES
    other = f" + {fixed.bytes} bytes for other tiles" if fixed.bytes else ""
    text = (
        f"ring of {count} stages: {count} x {stage.bytes} bytes{other} + {BARRIER_BYTES} for "
        f"mbarriers = {total} of {SMEM_BYTES} bytes of shared memory"
    )
    if stage.columns:
        columns = count * stage.columns + fixed.columns
        text += (
            f"; {count} x {stage.columns} + {fixed.columns} = {columns} of {TMEM_COLUMNS} columns "
            "of tensor memory"
        )
    remark(loop, text)


def _check_stages(loop: scf.ForOp, count: int, stage: _Footprint, fixed: _Footprint) -> None:
    """Raises a match failure for more slots than fit, where some would."""
    budgets = (
        (SMEM_BYTES, stage.bytes, fixed.bytes,
         "bytes of shared memory, 227 KB, where TMA puts operands and mma reads them"),
        (TMEM_COLUMNS, stage.columns, fixed.columns,
         "columns of tensor memory, 256 KB, where accumulators and scale factors are"),
    )  # fmt: skip
    fitting = [(total - rest) // each for total, each, rest, _ in budgets if each]
    most = min(fitting, default=count)
    if not 1 <= most < count:
        return
    total, each, rest, where = budgets[fitting.index(most)]
    other = f" + {rest}" if rest else ""
    raise match_failure(
        loop,
        f"expected stages of at most {most}, got {count}: {count} x {each}{other} = "
        f"{count * each + rest}, a CTA has {total} {where}; take stages={most} or a smaller n-tile",
    )


@dataclass(frozen=True)
class _Footprint:
    bytes: int
    columns: int

    @staticmethod
    def of(tiles: list[ir.OpView]) -> _Footprint:
        shared = [t.tile.type for t in tiles if isinstance(t, tc.SmemTileOp)]
        columns = [t for t in tiles if isinstance(t, tc.TmemTileOp)]
        return _Footprint(
            sum(round_up(shared_bytes(kind), SMEM_TILE_ALIGNMENT) for kind in shared),
            first_columns(columns)[1],
        )


def choose_stages(
    trips: int,
    stage_bytes: int,
    fixed_bytes: int,
    stage_columns: int,
    fixed_columns: int,
    ctas_per_sm: Sequence[int] = (2, 1),
) -> int:
    """Number of slots per ring: as many as fit with the first number in `ctas_per_sm` that leaves
    at least two slots or, if none does, with the last number.

    It is at least 1 even if nothing fits; plan-memory then reports the sizes.
    """
    count, target = 1, DEFAULT_TARGET
    for ctas in ctas_per_sm:
        usable = target.smem_per_sm // ctas - target.smem_reserved
        shared = usable - BARRIER_BYTES - fixed_bytes
        limits = [trips, MOST_STAGES]
        if stage_bytes:
            limits.append(shared // stage_bytes)
        if stage_columns:
            limits.append((TMEM_COLUMNS // ctas - fixed_columns) // stage_columns)
        count = max(1, min(limits))
        if count >= min(2, trips):
            break
    return count
