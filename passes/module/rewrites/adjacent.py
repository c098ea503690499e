"""Adjacent parts of one tensor to which the same ops are applied: the ops are joined, so that they
process the parts together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from tcir._mlir import func, ir, tensor
from tcir.dialect.attributes import integers
from tcir.dialect.upstream import RESHAPES, names
from tcir.passes.analysis.moves import move_of
from tcir.passes.module.rewrites.joined import DifferentError, Joint

VIEWS = names(*RESHAPES, tensor.ExtractSliceOp, tensor.ConcatOp)
"""Ops that only move elements."""
SLICES = names(tensor.ExtractSliceOp)
COLUMNS = 1
"""Dimension of the columns of a product's result."""


def join_adjacent(
    function: func.FuncOp,
    frozen: Set[ir.Value],
    whole: ir.Value,
    parts: Sequence[ir.Value],
    needs_own: Callable[[ir.Value], str],
) -> list[ir.Value]:
    """Joins the ops that follow adjacent columns of `whole`, such as the rotations of an
    attention's queries and keys, where they are the same; returns the joined tensors.

    parts:     slices of the columns of `whole`, one after another
    needs_own: returns the reason why a tensor cannot be a slice of a larger tensor; "" if it can
    """
    found: list[ir.Value] = []
    start = 0
    while start < len(parts) - 1:
        for end in range(len(parts), start + 1, -1):
            last = _last(function, parts[start:end])
            if last is None or any(map(needs_own, last)):
                continue
            made = _joined(function, frozen, whole, parts[start:end], last)
            if made is not None:
                found.append(made)
                start = end - 1
                break
        start += 1
    return found


def _joined(
    function: func.FuncOp,
    frozen: Set[ir.Value],
    whole: ir.Value,
    run: Sequence[ir.Value],
    last: Sequence[ir.Value],
) -> ir.Value | None:
    """The tensors `last`, made of the slices `run`, as one; None if no op makes them together."""
    ops = [each.operation for each in function.entry_block]
    first = min((each.owner for each in last), key=ops.index)
    available = before(function, first)
    for dim in range(last[0].type.rank):
        with ir.InsertionPoint(first), first.location:
            joint = Joint(available, frozen)
            joint.known[tuple(run), COLUMNS] = _columns(whole, run)
            try:
                made = joint.join(last, dim)
            except DifferentError:
                continue
            start = 0
            for each in last:
                shape = list(each.type.shape)
                offsets = [start if d == dim else 0 for d in range(len(shape))]
                ones = [1] * len(shape)
                part = tensor.ExtractSliceOp(each.type, made, [], [], [], offsets, shape, ones)
                each.replace_all_uses_with(part.result)
                start += shape[dim]
            return made
    return None


def _last(function: func.FuncOp, run: Sequence[ir.Value]) -> list[ir.Value] | None:
    """What the same ops make of each of `run`, if all else that they make is read by them alone and
    some of them compute."""
    known: dict[ir.Value, Sequence[ir.Value]] = {run[0]: run}
    matched, computing = set[ir.Operation](), False
    for op in [each.operation for each in function.entry_block]:
        if len(op.results) != 1 or not any(each in known for each in op.operands):
            continue
        others = [_counterpart(op, known, n, matched) for n in range(1, len(run))]
        if any(each is None for each in others):
            continue
        ops = [op, *(each for each in others if each is not None)]
        matched.update(ops)
        known[op.results[0]] = [each.results[0] for each in ops]
        moves = op.name in VIEWS or move_of(op.results[0]) is not None
        computing = computing or not moves
    leaving = [
        values
        for values in known.values()
        if any(use.owner.operation not in matched for value in values for use in value.uses)
    ]
    return list(leaving[0]) if len(leaving) == 1 and computing else None


def _counterpart(
    op: ir.Operation,
    known: Mapping[ir.Value, Sequence[ir.Value]],
    number: int,
    matched: Set[ir.Operation],
) -> ir.Operation | None:
    """The op that reads of part `number` what `op` reads of the first one."""
    place = next(n for n, each in enumerate(op.operands) if each in known)
    for use in known[op.operands[place]][number].uses:
        other = use.owner.operation
        if other.name != op.name or other in matched or len(other.operands) != len(op.operands):
            continue
        if all(
            known[mine][number] == theirs if mine in known else theirs not in known
            for mine, theirs in zip(op.operands, other.operands, strict=True)
        ) and _slices(op) == _slices(other):
            return other
    return None


def _slices(op: ir.Operation) -> list[int]:
    """Where a slice begins; nothing for other ops."""
    return integers(op, "static_offsets") if op.name in SLICES else []


def _columns(whole: ir.Value, run: Sequence[ir.Value]) -> ir.Value:
    """Columns of `whole` that adjacent slices have together."""
    rows, _ = run[0].type.shape
    first = integers(run[0].owner, "static_offsets")
    shape = [rows, sum(each.type.shape[COLUMNS] for each in run)]
    kind = ir.RankedTensorType.get(shape, whole.type.element_type)
    return tensor.ExtractSliceOp(kind, whole, [], [], [], first, shape, [1, 1]).result


def before(function: func.FuncOp, op: ir.Operation) -> set[ir.Value]:
    """The values that are available before `op`: the arguments of the function, and the results of
    the ops before `op`."""
    found = set(function.entry_block.arguments)
    for each in function.entry_block:
        if each.operation == op:
            break
        found.update(each.results)
    return found
