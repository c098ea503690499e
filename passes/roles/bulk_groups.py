"""Orders what a warp writes to shared memory before its TMA stores, and their tiles' next use."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import defining
from tcir.dialect.limits import QUARTERS
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import EPILOGUE
from tcir.passes.build.emit import fence, i64
from tcir.passes.build.kernel_ops import ancestor_in, walk_body

STORE = tc.TmaStoreOp


def guard_stores(kernel: func.FuncOp, role_attribute: str) -> None:
    """Makes each run of consecutive ``tc.tma_store`` a bulk group, waited for before its tiles are
    written again, and at the kernel's end.

    In front of it every thread of the warp makes its writes visible to the async proxy and meets
    the others, one of which stores. A warp with n tiles writes to one while the stores of the
    others, n - 1 groups, may be under way. A fence belongs to no role of its own: `role_attribute`
    names it.
    """
    runs = list(_runs(kernel))
    for first, last in runs:
        with ir.InsertionPoint(_first_write(first)), first.location:
            _wait(_tiles_of_a_warp(first.tile) - 1)
            tc.WarpBarrierOp()
        with ir.InsertionPoint(first), first.location:
            fenced = fence("proxy.async")
            fenced.attributes[role_attribute] = ir.StringAttr.get(EPILOGUE)
            tc.WarpBarrierOp()
        with ir.InsertionPoint.after(last), last.location:
            tc.BulkCommitOp()
    if runs:
        last = runs[-1][1]
        storing = ancestor_in(last, kernel.regions[0].blocks[0])
        with ir.InsertionPoint.after(storing), last.location:
            _wait(0)


def _wait(pending: int) -> None:
    tc.BulkWaitOp(i64(pending), ir.BoolAttr.get(True))


def _tiles_of_a_warp(tile: ir.Value) -> int:
    """How many tiles a warp stores from in turn: the four warps of a warpgroup share a ring out."""
    slot = defining(tile, tc.SlotOp)
    return 1 if slot is None else max(1, slot.ring.type.count // QUARTERS)


def _first_write(store: ir.OpView) -> ir.OpView:
    """The op of the store's block that is or contains the first write to its tile."""
    for op in store.operation.block:
        if any(isinstance(each, tc.StoreSharedOp) and each.tile == store.tile for each in walk(op)):
            return op
    return store


def _runs(kernel: func.FuncOp) -> Iterator[tuple[ir.OpView, ir.OpView]]:
    """First and last op of each run of stores: no other op of ``tc`` is between them."""
    blocks = {op.operation.block: None for op in walk_body(kernel) if isinstance(op, STORE)}
    for block in blocks:
        run: list[ir.OpView] = []
        for op in block:
            if isinstance(op, STORE):
                run.append(op)
            elif run and op.operation.name.startswith(("tc.", "scf.")):
                yield run[0], run[-1]
                run = []
        if run:
            yield run[0], run[-1]
