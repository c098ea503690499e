"""join-siblings: joins the products that multiply one tensor by several frozen matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import ClassVar

from tcir._mlir import func, ir, tensor
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.contraction import is_contraction
from tcir.passes.analysis.frozen import Frozen
from tcir.passes.analysis.moves import move_of, parallel
from tcir.passes.emit.tensor_functions import erase_unread, functions_with_body
from tcir.passes.module.rewrites.adjacent import before, join_adjacent
from tcir.passes.module.rewrites.joined import DifferentError, Joint
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

COLUMNS = 1
"""Dimension of a product's result that the columns of its second matrix index."""


@register_pass
@dataclass(frozen=True)
class JoinSiblings(Pass):
    """Joins the products that multiply one tensor by several frozen matrices (``tc.frozen``), such
    as an attention's queries, keys and values.

    Before (the weights and biases are frozen arguments)::

        %qt = linalg.transpose ins(%wq); %kt = linalg.transpose ins(%wk)
        %q = linalg.matmul ins(%x, %qt); %qb = linalg.generic ins(%q, %bq) { … arith.addf … }
        %k = linalg.matmul ins(%x, %kt); %kb = linalg.generic ins(%k, %bk) { … arith.addf … }

    After::

        %w = tensor.concat dim(0) %wq, %wk; %b = tensor.concat dim(0) %bq, %bk
        %wt = linalg.transpose ins(%w)
        %y = linalg.matmul ins(%x, %wt); %yb = linalg.generic ins(%y, %b) { … arith.addf … }
        %qb = tensor.extract_slice %yb[0, 0]; %kb = tensor.extract_slice %yb[0, …]

    Tensors that depend on frozen arguments alone, here the concatenations, are computed once for
    many calls. The elementwise ops after the products are joined as long as they are the same for
    each. Products stay separate if their separate epilogues could compute more than a joint one, or
    if another product reads one of the results, because that result would have to be copied. Ops
    that follow only some adjacent products, such as the rotations of queries and keys, are also
    joined. A remark states what was joined, or why nothing was. Preserves every value, bit for bit.
    """

    name: ClassVar[str] = "join-siblings"

    def run(self, module: ir.Module) -> None:
        for function in functions_with_body(module):
            frozen = Frozen.of(function)
            if not frozen.made or len(function.regions[0].blocks) != 1:
                continue
            for products in _siblings(function, frozen):
                _join(function, frozen, products)
            erase_unread(function)


def _siblings(function: func.FuncOp, frozen: Frozen) -> list[list[ir.Operation]]:
    """Products of the same first matrix with frozen second ones, in order."""
    found: dict[ir.Value, list[ir.Operation]] = defaultdict(list)
    for op in function.entry_block:
        if op.operation.name == "linalg.matmul" and op.operands[1] in frozen.made:
            found[op.operands[0]].append(op.operation)
    return [products for products in found.values() if len(products) > 1]


def _is_elementwise(op: ir.Operation, read: ir.Value) -> bool:
    """Whether the elements of an op's result are computed from those of `read` with the same
    indices, or with other indices of the rows."""
    if isinstance(op.opview, RESHAPES):
        return bool(op.results[0].type.shape[-1:] == read.type.shape[-1:])
    if op.name.startswith(("arith.", "math.")):
        return True
    found = parallel(op.results[0]) if len(op.results) == 1 else None
    if found is None:
        return False
    _, maps = found
    return all(each == maps[-1] for each, o in zip(maps, op.operands, strict=True) if o == read)


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def _join(function: func.FuncOp, frozen: Frozen, products: Sequence[ir.Operation]) -> None:
    """Joins products, and the elementwise ops after them that are the same for each."""
    first, values = products[0], [op.results[0] for op in products]
    with ir.InsertionPoint(first), first.location:
        joint = Joint(before(function, first), frozen.made)
        try:
            whole = joint.join(values, COLUMNS)
        except DifferentError as problem:
            remark(first.opview, f"{len(products)} products of one tensor stay separate: {problem}")
            return
        while following := _following(values):
            try:
                whole, values = joint.join(following, COLUMNS), following
            except DifferentError:
                break
        if reason := next(filter(None, map(_fused, values)), ""):
            remark(first.opview, f"{len(products)} products of one tensor stay separate: {reason}")
            return
        remark(first.opview, f"joined {len(products)} products of one tensor: {whole.type}")
        ends = accumulate(each.type.shape[COLUMNS] for each in values)
        parts = [_columns(whole, each.type, end) for each, end in zip(values, ends, strict=True)]
        for each, part in zip(values, parts, strict=True):
            each.replace_all_uses_with(part)
    for made in join_adjacent(function, frozen.made, whole, parts, partial(_fused, moved=True)):
        remark(first.opview, f"joined the ops after adjacent ones of them: {made.type}")


def _following(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Results of the only readers of each value, all elementwise; none if there are others."""
    users = [_users(each) for each in values]
    if any(len(each) != 1 for each in users):
        return []
    ops = [op for (op,) in users]
    pairs = zip(ops, values, strict=True)
    computed = all(_is_elementwise(op, value) and not _is_view(op) for op, value in pairs)
    return [op.results[0] for op in ops] if computed and len({*ops}) == len(ops) else []


def _is_view(op: ir.Operation) -> bool:
    """Whether an op only gives a tensor's elements other indices."""
    move = move_of(op.results[0]) if op.results else None
    return isinstance(op.opview, RESHAPES) or (move is not None and move.is_permutation)


def _fused(value: ir.Value, moved: bool = False) -> str:
    """Why a tensor is better the result of a product of its own; "" if it is not.

    moved: whether `value` has the elements of the product's result at other indices
    """
    for user in _users(value):
        same = _is_elementwise(user, value)
        if _is_view(user):
            if reason := _fused(user.results[0], moved or not same):
                return reason
        elif user.name == "func.return":
            return "one is a result of the program"
        elif is_contraction(user.opview):
            return f"a {user.name} reads one, which it would need a copy of"
        elif same and not moved:
            return f"the product's own epilogue computes the {user.name} after it"
    return ""


def _columns(whole: ir.Value, kind: ir.RankedTensorType, end: int) -> ir.Value:
    """The columns of a matrix before `end`, of type `kind`."""
    offsets = [0, end - kind.shape[COLUMNS]]
    return tensor.ExtractSliceOp(kind, whole, [], [], [], offsets, kind.shape, [1, 1]).result
