"""Accessors for kernels at the tile level, before their conversion to threads."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.walk import walk
from tcir.passes.emit import index
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import is_converted
from tcir.passes.emit.index import Index


def find_kernels(module: ir.Module, pass_name: str, after: str) -> list[func.FuncOp]:
    """The functions with ``tc.kernel``. A module without such a function, or with any other kernel,
    is a match failure."""
    kernels = [op for op in module.body.operations if "tc.kernel" in op.operation.attributes]
    if not kernels and not is_converted(module):
        raise match_failure(
            module.operation,
            f"{pass_name} expected a function with the attribute tc.kernel, got none; "
            f"run {after} first",
        )
    return kernels


def body(kernel: func.FuncOp) -> list[ir.OpView]:
    """The ops of the kernel's block."""
    return list(kernel.regions[0].blocks[0])


def walk_body(kernel: func.FuncOp) -> Iterator[ir.OpView]:
    """All ops of the kernel, including nested ops, in program order."""
    for op in body(kernel):
        yield from walk(op)


CTAS_PER_SM = "tc.ctas_per_sm"
"""Attribute of a kernel that is launched with no more CTAs than fit on the SMs together."""


def trip_count(loop: scf.ForOp) -> int:
    """Number of iterations of a loop that counts from 0 in steps of 1: its constant end, or the
    bound that its attribute gives."""
    if MOST_TRIPS in loop.attributes:
        return int(ir.IntegerAttr(loop.attributes[MOST_TRIPS]).value)
    bounds = [constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step)]
    if None in bounds or bounds[0] != 0 or bounds[2] != 1:
        raise match_failure(
            loop, f"expected a loop from 0 in steps of 1 with constant end, got {bounds}"
        )
    return int(bounds[1] or 0)


def iteration(loop: scf.ForOp) -> Index:
    """The number of the current iteration, counted from 0 over all executions of `loop`.

    It is built at the insertion point, in the loop's body, from the induction variables of the loop
    and of the loops around it.
    """
    around = _loop_around(loop)
    if around is None:
        return loop.induction_variable
    return index.add(index.mul(iteration(around), trip_count(loop)), loop.induction_variable)


def iterations(loop: scf.ForOp) -> int:
    """Number of iterations of all executions of `loop` together, or an upper bound of it."""
    around = _loop_around(loop)
    return trip_count(loop) * (1 if around is None else iterations(around))


def _loop_around(loop: scf.ForOp) -> scf.ForOp | None:
    """The loop that executes `loop` repeatedly; None where its variable counts on by itself."""
    trip_count(loop)  # rejects loops whose induction variable is not the iteration number
    parent = loop.operation.parent.opview
    return parent if isinstance(parent, scf.ForOp) and MOST_TRIPS not in loop.attributes else None


ACCESSES = tc.TmemLdOp | tc.TmemStOp | tc.TmemLdWordsOp | tc.TmemStWordsOp
"""Ops with a sub-partition and a first column."""


BY_WARP = "tc.by_warp"
"""Unit attribute of a loop of as many iterations as a role has warps: each warp executes one of
them."""


def is_quarter_loop(op: scf.ForOp) -> bool:
    """Whether a loop runs over sub-partitions: its induction variable is the `quarter` of its
    ``tc.tmem_ld`` and ``tc.tmem_st`` ops, or the loop has the attribute `BY_WARP`."""
    if BY_WARP in op.attributes:
        return True
    reads = [inner for inner in walk(op) if isinstance(inner, ACCESSES)]
    return bool(reads) and all(read.quarter == op.induction_variable for read in reads)


def accumulator_of(d: ir.Value) -> ir.Value:
    """The accumulator tile of the D operand of an mma. D may be a view of the tile in which lanes
    are masked."""
    owner = None if isinstance(d, ir.BlockArgument) else d.owner.opview
    return owner.d if isinstance(owner, tc.EnableLanesOp) else d


def ancestor_in(op: ir.OpView, block: ir.Block) -> ir.OpView | None:
    """The op of `block` that is `op` itself or contains it; None if there is none."""
    current = op.operation
    while current is not None and current.block is not None:
        if current.block == block:
            return current.opview
        current = current.parent.operation if current.parent else None
    return None
