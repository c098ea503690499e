"""interleave-stores: stores rows of a tile while the rows below them are multiplied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from tcir._mlir import arith, ir, nvvm
from tcir.dialect.attributes import string
from tcir.dialect.walk import walk
from tcir.passmanager.pipeline import Pass, register_pass

STORE, LOAD, OTHER_LOAD = "llvm.store", "nvvm.ldmatrix", "llvm.load"
ASM, MMA = "llvm.inline_asm", "mma.sync"
EVERY_LANE = -1


@register_pass
@dataclass(frozen=True)
class InterleaveStores(Pass):
    """Reorders the end of a warp's tile by rows of mma atoms, after `convert-tc-to-nvvm`.

    Before, after the last barrier or branch of the block that ends a tile::

        K step 0: mma.sync of rows 0, 1, 2, 3
        …
        K step 3: nvvm.ldmatrix; mma.sync of rows 0, 1, 2, 3
        exchange among threads, and llvm.store, of rows 0, 1, 2, 3

    After, with a nvvm.bar.warp.sync at the end of each line::

        nvvm.ldmatrix of rows 0, 1; mma.sync of row 0, all K steps
        nvvm.ldmatrix of row 2; mma.sync of row 1; exchange and llvm.store of row 0
        nvvm.ldmatrix of row 3; mma.sync of row 2; exchange and llvm.store of row 1
        …

    Results leave an SM more slowly than they are computed; in this order the tensor core computes
    products in the meantime. The ``bar.warp.sync`` is needed because ptxas would move all stores
    after all products, but it moves no store across this barrier. Nothing changes if stores are in
    branches (which skip elements outside the tensor), if a warp has only one row of atoms, or if an
    epilogue reads tensors, because each row would wait for its own loads. Preserves the order of
    the sums of every element, and the order of the stores.
    """

    name: ClassVar[str] = "interleave-stores"

    def run(self, module: ir.Module) -> None:
        blocks = [b for op in walk(module.operation) for r in op.operation.regions for b in r]
        for block in blocks:
            if len(block.operations):  # none in a module whose results are all empty
                _reorder(block)


def _reorder(block: ir.Block) -> None:
    """Reorders the ops after the last pinned op of `block`, if they store rows of atoms."""
    *ops, end = [op.operation for op in block]
    last = max((at for at, op in enumerate(ops) if _is_pinned(op)), default=-1)
    tail = _Tail(ops[last + 1 :])
    rows = tail.rows()
    if len(rows) < 2:
        return
    done = set[ir.Operation]()

    def place(wanted: Iterable[ir.Operation]) -> None:
        for op in tail.before(wanted):
            if op not in done:
                op.move_before(end)
                done.add(op)

    products = [tail.products_of(row) for row in rows]
    loads = [[op for op in tail.before(row) if op.name == LOAD] for row in products]
    place(loads[0])
    for following, product, row in zip(
        [*loads[1:], [], []], [*products, []], [[], *rows], strict=True
    ):
        place(following)
        place(product)
        place(row)
        if product:
            _meet(end, rows[0][0].location)


def _meet(end: ir.Operation, location: ir.Location) -> None:
    """Emits a barrier for the whole warp, which is converged here: ``mma.sync`` also
    requires that."""
    with ir.InsertionPoint(end), location:
        every = arith.ConstantOp(ir.IntegerType.get_signless(32), EVERY_LANE).result
        nvvm.bar_warp_sync(every)


class _Tail:
    """The ops after the last pinned op of a block."""

    def __init__(self, ops: list[ir.Operation]) -> None:
        self.ops = ops
        self.places = {op: at for at, op in enumerate(ops)}

    def rows(self) -> list[list[ir.Operation]]:
        """The stores in program order, grouped by row of atoms; empty if a store depends on
        products of several rows or of none, or if there are loads other than ``ldmatrix``."""
        if any(op.name == OTHER_LOAD for op in self.ops):
            return []
        stores = [op for op in self.ops if op.name == STORE]
        keys = [{_row(product) for product in self.products_of([op])} for op in stores]
        if any(len(key) != 1 for key in keys):
            return []
        pairs = zip(keys, stores, strict=True)
        return [[op for _, op in row] for _, row in groupby(pairs, lambda pair: pair[0])]

    def products_of(self, ops: Iterable[ir.Operation]) -> list[ir.Operation]:
        """The last products that `ops` depend on."""
        return [op for op in self._reached(ops, past_products=False) if _is_mma(op)]

    def before(self, ops: Iterable[ir.Operation]) -> list[ir.Operation]:
        """`ops` and all ops on which they depend, in program order."""
        return sorted(self._reached(ops, past_products=True), key=self.places.__getitem__)

    def _reached(self, ops: Iterable[ir.Operation], *, past_products: bool) -> set[ir.Operation]:
        seen, pending = set[ir.Operation](), list(ops)
        while pending:
            op = pending.pop()
            if op in seen:
                continue
            seen.add(op)
            if past_products or not _is_mma(op):
                owners = [value.owner for value in op.operands]
                pending += [o for o in owners if not isinstance(o, ir.Block) and o in self.places]
        return seen


def _is_mma(op: ir.Operation) -> bool:
    return op.name == ASM and string(op, "asm_string").startswith(MMA)


def _row(product: ir.Operation) -> ir.Value:
    """Register of A that identifies a row: products of one row of atoms and one K step share it."""
    return product.operands[0]


def _is_pinned(op: ir.Operation) -> bool:
    """Whether threads synchronise or branch at this op, so that no op may move across it."""
    other = op.name == ASM and not _is_mma(op)
    return len(op.regions) > 0 or op.name.startswith("nvvm.bar") or other
