"""fetch-ahead: loads per-column operands of an epilogue before the products of its tile."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integers, optional_integer
from tcir.dialect.limits import launch_registers
from tcir.dialect.warp_types import WALK
from tcir.passes.emit.kernel_ops import CTAS_PER_SM, find_kernels, walk_body
from tcir.passes.pipelining.deferred import FETCHED, registers, registers_by_column
from tcir.passmanager.pipeline import Pass, register_pass

ADDRESSES = 24
"""Registers of a thread for addresses and for a few elements of an epilogue at a time."""


@register_pass
@dataclass(frozen=True)
class FetchAhead(Pass):
    """Loads biases and other per-column operands of an epilogue before the loop over K.

    Before, in the role of the consumers::

        %d = scf.for %k = … { … "tc.wgmma"; "tc.wgmma_wait"; … }
        %e = "tc.fragment_epilogue"(%d, %m, %n) ({ … "tc.element"(%bias) {map = (m, n) -> (n)} … })

    After::

        %b = "tc.fetch_fragment"(%bias, %m, %n) {map = (m, n) -> (n)}
        %d = scf.for %k = … { … }
        %e = "tc.fragment_epilogue"(%d, %m, %n) ({ … "tc.element"(%b) … })

    The operands are loaded while the first tiles of A and B arrive. Loads after the products would
    make every thread wait for them at each tile. A kernel stays as it is if a thread has too few
    registers, if rows are on a walk, or if stores are deferred, because defer-stores itself loads
    operands early. Preserves every value.
    """

    name: ClassVar[str] = "fetch-ahead"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            for op in list(walk_body(kernel)):
                if isinstance(op, tc.FragmentEpilogueOp):
                    _fetch(op, _room(kernel))


def _room(kernel: func.FuncOp) -> int:
    """Registers per thread for the sums and the fetched operands."""
    threads = prod(integers(kernel, "tc.block")) * (optional_integer(kernel, CTAS_PER_SM) or 1)
    return launch_registers(threads) - ADDRESSES


def _fetch(op: tc.FragmentEpilogueOp, room: int) -> None:
    steps = None if isinstance(op.sums.owner, ir.Block) else op.sums.owner.opview
    if not isinstance(steps, scf.ForOp) or WALK in op.attributes:
        return
    room -= registers(op.sums.type)
    for read in list(op.body.blocks[0]):
        if not isinstance(read, tc.ElementOp) or not _is_of_columns(read):
            continue
        shape, atom = op.out.type.shape, op.out.type.atom
        room -= registers_by_column(shape[1], read)
        inputs = [read.tensor, *op.indices]
        if room < 0 or not all(_is_before(value, steps) for value in inputs):
            return
        kind = tc.FragmentType.build(shape, read.value.type, "C", atom)
        with ir.InsertionPoint(steps), read.location:
            place = read.attributes["map"]
            ahead = tc.FetchFragmentOp(read.tensor, list(op.indices), place, op.tails, kind)
        read.operation.operands[0] = ahead.fragment


def _is_of_columns(read: tc.ElementOp) -> bool:
    """Whether the op reads memory, and the same elements in all rows."""
    *_, row, column = range(read.out_rank)
    of_memory = isinstance(read.tensor.type, ir.MemRefType) and str(read.value.type) in FETCHED
    return of_memory and column in read.dims and row not in read.dims


def _is_before(value: ir.Value, op: ir.OpView) -> bool:
    """Whether a value that is used after `op` is defined before it."""
    if isinstance(value.owner, ir.Block):
        return True
    made, around = value.owner.operation, op.operation.block
    return made.block != around or bool(made.is_before_in_block(op.operation))
