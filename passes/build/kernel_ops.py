"""Queries on tile-level kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, defining, integer
from tcir.dialect.walk import walk
from tcir.passes.build.diagnostics import match_failure


def find_kernels(module: ir.Module, pass_name: str, after: str) -> list[func.FuncOp]:
    """The functions with ``tc.kernel``; a module without one is a match failure."""
    kernels = [op for op in module.body.operations if "tc.kernel" in op.operation.attributes]
    if not kernels:
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
    """All ops of the kernel, nested ones included, in program order."""
    for op in body(kernel):
        yield from walk(op)


MOST_TRIPS = "tc.most_trips"
"""Attribute of a loop with dynamic bounds: an upper bound on its iterations, all executions together.
Its induction variable counts them on from one execution to the next, from 0 in steps of 1."""


def trip_count(loop: scf.ForOp) -> int:
    """Iterations of a loop from 0 in steps of 1 with constant end, or the upper bound of its attribute."""
    if MOST_TRIPS in loop.attributes:
        return int(ir.IntegerAttr(loop.attributes[MOST_TRIPS]).value)
    bounds = [constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step)]
    if None in bounds or bounds[0] != 0 or bounds[2] != 1:
        raise match_failure(loop, f"expected a loop from 0 in steps of 1 with constant end, got {bounds}")
    return int(bounds[1] or 0)


def accumulator_of(d: ir.Value) -> ir.Value:
    """The accumulator tile of an mma's D, which may be a lane-masked view of it."""
    owner = None if isinstance(d, ir.BlockArgument) else d.owner.opview
    return owner.d if isinstance(owner, tc.EnableLanesOp) else d


def ancestor_in(op: ir.OpView, block: ir.Block) -> ir.OpView | None:
    """The op of `block` that is `op` or contains it; None if there is none."""
    current = op.operation
    while current is not None and current.block is not None:
        if current.block == block:
            return current.opview
        current = current.parent.operation if current.parent else None
    return None
