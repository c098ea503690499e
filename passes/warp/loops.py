"""Common code of the passes over warp-level main loops: finding the loop, and copying parts of its
body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import defining
from tcir.dialect.operation import Op
from tcir.dialect.walk import walk
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import walk_body


@dataclass(frozen=True)
class KStep:
    """A `tc.mma_sync` of a loop body together with the loads of its operands."""

    a: tc.LoadFragmentOp
    b: tc.LoadFragmentOp
    mma: tc.MmaSyncOp


def loops_with(kernel: func.FuncOp, kind: type[Op] | tuple[type[Op], ...]) -> list[scf.ForOp]:
    """The loops of the kernel whose body directly contains an op of class `kind`."""
    loops = [op for op in walk_body(kernel) if isinstance(op, scf.ForOp)]
    return [loop for loop in loops if any(isinstance(op, kind) for op in loop.body)]


def k_steps(loop: scf.ForOp) -> list[KStep]:
    """The products of a loop body in program order; a body of another form is a match failure."""
    steps = []
    for op in loop.body:
        if isinstance(op, tc.MmaSyncOp):
            a, b = (defining(value) for value in (op.a, op.b))
            if not all(isinstance(load, tc.LoadFragmentOp) for load in (a, b)):
                raise match_failure(
                    op, "expected operands that tc.load_fragment of the same loop makes"
                )
            steps.append(KStep(a, b, op))
    return steps


def clone_all(ops: Iterable[ir.OpView], mapping: Mapping) -> None:
    """Clones each op with `clone`."""
    for op in ops:
        clone(op, mapping)


def operands_of(op: ir.OpView) -> list[ir.Value]:
    """The values defined outside `op` that `op` and its nested ops use."""
    return [value for inner in walk(op) for value in inner.operation.operands]


def slice_of(values: Sequence[ir.Value], block: ir.Block) -> list[ir.OpView]:
    """The ops of `block` that compute `values`, in program order."""
    wanted: list[ir.Value] = []
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block):
            continue
        operation = owner.operation
        if operation.block == block and operation not in wanted:
            wanted.append(operation)
            pending += operation.operands
    return [op for op in block if op.operation in wanted]
