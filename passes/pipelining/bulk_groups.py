"""Orders the writes of a warp to shared memory before its TMA stores, and its TMA stores before its
next writes."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import defining
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import CONSUMER, EPILOGUE, FOR_ROLE, role_of
from tcir.passes.emit import index
from tcir.passes.emit.builders import fence, i64
from tcir.passes.emit.kernel_ops import ancestor_in, walk_body
from tcir.passes.emit.staged_store import stages_of, warps_of

STORE = tc.TmaStoreOp


def guard_stores(kernel: func.FuncOp) -> None:
    """Makes each run of consecutive ``tc.tma_store`` ops a bulk group. The kernel waits for the
    group before it writes the group's tiles again, and at its end.

    Before the stores, every thread that wrote the tile executes a fence for the async proxy and
    waits for the other threads of its warp, or of the warps that share the tile; then one thread
    stores. With n tiles, one tile is written while the stores of the other n - 1 tiles, which are n
    - 1 groups, may still be in flight. The kernel waits for stores of fragments
    (``tc.store_fragment_staged``) at its end.
    """
    runs = list(_runs(kernel))
    staged = [op for op in walk_body(kernel) if isinstance(op, tc.StoreFragmentStagedOp)]
    if staged:
        _await_all(kernel, staged[-1], CONSUMER)
    for first, last in runs:
        storing = _whole(first)
        with ir.InsertionPoint(_first_write(storing, first.tile)), first.location:
            _wait(_stages(first.tile) - 1)
            _meet(first)
        with ir.InsertionPoint(storing), first.location:
            fenced = fence("proxy.async")
            fenced.attributes[FOR_ROLE] = ir.StringAttr.get(EPILOGUE)
            _meet(first)
        with ir.InsertionPoint.after(last), last.location:
            tc.BulkCommitOp()
    if runs:
        _await_all(kernel, runs[-1][1], EPILOGUE)


def _await_all(kernel: func.FuncOp, last: ir.OpView, role: str) -> None:
    """Waits, after the loops around the last store of a role, until all tiles have been read."""
    storing = ancestor_in(last, kernel.regions[0].blocks[0])
    with ir.InsertionPoint.after(storing), last.location:
        wait = _wait(0)
        if role_of(wait) != role:
            wait.attributes[FOR_ROLE] = ir.StringAttr.get(role)


def _wait(pending: int) -> tc.BulkWaitOp:
    return tc.BulkWaitOp(i64(pending), ir.BoolAttr.get(True))


def _stages(tile: ir.Value) -> int:
    """Number of tiles that stores use in turn."""
    slot = defining(tile, tc.SlotOp)
    return 1 if slot is None else stages_of(slot.ring.type)


def _whole(store: ir.OpView) -> ir.OpView:
    """The store, or the branch that restricts it to one warp."""
    around = store.operation.parent.opview
    return around if isinstance(around, scf.IfOp) else store


def _meet(store: ir.OpView) -> None:
    """Emits a barrier for the warps that write the tile of `store`."""
    warps = warps_of(store.tile.type)
    if warps == 1 or _whole(store) is store:
        tc.WarpBarrierOp()
        return
    quarter = _whole(store).operation.parent.opview.induction_variable
    number = index.value(index.div(quarter, warps))
    tc.WarpsBarrierOp(number, i64(warps))


def _first_write(storing: ir.OpView, tile: ir.Value) -> ir.OpView:
    """The op of the block of `storing` that is or contains the first write to `tile`."""
    for op in storing.operation.block:
        if any(isinstance(each, tc.StoreSharedOp) and each.tile == tile for each in walk(op)):
            return op
    return storing


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
