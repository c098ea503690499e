"""Orders what a warp writes to shared memory before its TMA stores, and their tiles' next use."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.warp_map import EPILOGUE
from tcir.passes.build.emit import fence, i64
from tcir.passes.build.kernel_ops import walk_body

STORE = tc.TmaStoreOp


def guard_stores(kernel: func.FuncOp, role_attribute: str) -> None:
    """Makes each run of consecutive ``tc.tma_store`` a bulk group that is waited for at once.

    In front of it every thread of the warp makes its writes visible to the async proxy and meets
    the others, one of which stores; behind it they may write to the tile again. A fence belongs to
    no role of its own: `role_attribute` names it.
    """
    for first, last in list(_runs(kernel)):
        with ir.InsertionPoint(first), first.location:
            fenced = fence("proxy.async")
            fenced.attributes[role_attribute] = ir.StringAttr.get(EPILOGUE)
            tc.WarpBarrierOp()
        with ir.InsertionPoint.after(last), last.location:
            tc.BulkCommitOp()
            tc.BulkWaitOp(i64(0), ir.BoolAttr.get(True))
            tc.WarpBarrierOp()


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
