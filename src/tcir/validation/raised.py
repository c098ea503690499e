"""The input program after the raising passes, from which bounds are derived.

Errors are propagated through ``tc.quantise_blocks`` (`tcir.validation.quantised`) and not through
the shifts and masks of a quantisation in ``linalg``; both compute the same codes. ``tc.attention``
omits some roundings of the original ops. Its distance from the original program is bounded by the
errors of a program in which each of these roundings may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir._mlir import arith
from tcir.dialect import tc
from tcir.dialect.upstream import names
from tcir.dialect.walk import walk
from tcir.passmanager.pipeline import Pipeline
from tcir.passmanager.remarks import remarks_to
from tcir.program.access import product_of

if TYPE_CHECKING:
    from tcir._mlir import ir

UNROUNDED = "tc.unrounded"
"""Attribute of ops whose results later states may not round."""
ROUNDING = names(
    arith.AddFOp, arith.DivFOp, arith.MulFOp, arith.SIToFPOp, arith.SubFOp, arith.TruncFOp,
)  # fmt: skip
"""Ops that round, besides sums of products."""
_NUMBER = "tc.number"


@dataclass(frozen=True)
class Raised:
    """The program before and after raise-attention; the roundings that the pass removes are
    marked.
    """

    before: ir.Module
    after: ir.Module


def with_quantisation_raised(module: ir.Module) -> ir.Module:
    """Returns a copy of the module after the pass raise-quantise; the pass's remarks are
    dropped.
    """
    return _after("raise-quantise", module)


def with_attention_raised(module: ir.Module) -> Raised | None:
    """Returns copies of the module before and after the pass raise-attention; None if the pass
    changes nothing.
    """
    from tcir._mlir import ir

    before = with_quantisation_raised(module)
    integer = ir.IntegerType.get_signless(64, module.context)
    ops = [each.operation for each in walk(before.operation)]
    for number, op in enumerate(ops):
        op.attributes[_NUMBER] = ir.IntegerAttr.get(integer, number)
    after = _after("raise-attention", before)
    if attentions(after) == attentions(before):
        return None
    left = {
        each.operation.attributes[_NUMBER].value
        for each in walk(after.operation)
        if _NUMBER in each.operation.attributes
    }
    gone = {op for number, op in enumerate(ops) if number not in left}
    last = _last_roundings(gone)
    for op in gone - last:
        if op.name in ROUNDING or product_of(op) is not None:
            op.attributes[UNROUNDED] = ir.UnitAttr.get(module.context)
    return Raised(before, after)


def _last_roundings(gone: set[ir.Operation]) -> set[ir.Operation]:
    """Removed roundings of results, which the op rounds as well."""
    from tcir._mlir import ir

    found = set()
    for op in gone:
        users = {use.owner.operation for result in op.results for use in result.uses}
        at = op if op.parent.name == "func.func" and not users & gone else None
        while at is not None and at in gone:
            inside = {each.operation for each in walk(at) if each.operation.name in ROUNDING}
            found |= inside
            sources = [each for each in at.operands if not isinstance(each, ir.BlockArgument)]
            at = sources[0].owner.operation if sources and not inside else None
    return found


def attentions(module: ir.Module) -> int:
    """Returns the number of ``tc.attention`` ops in a module."""
    return sum(isinstance(each, tc.AttentionOp) for each in walk(module.operation))


def copied(module: ir.Module) -> ir.Module:
    """Returns a copy of a module, which passes over the original do not change."""
    from tcir._mlir import ir

    return ir.Module.parse(module.operation.get_asm(print_generic_op_form=True), module.context)


def _after(name: str, module: ir.Module) -> ir.Module:
    copy = copied(module)
    with remarks_to(lambda _, __: None):
        for each in Pipeline([name]):
            each.run(copy)
    return copy
