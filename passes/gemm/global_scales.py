"""Global scales of block-scaled operands when the sums are split into parts: an epilogue multiplies
by them."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import arith, ir
from tcir.dialect import tc


def scaled_sums(op: tc.BlockScaledMatmulOp, total: ir.Value, factors: Sequence[ir.Value]) -> None:
    """Computes the result of `op` from `total`, its complete f32 sums before the multiplication by
    `factors`.

    If a ``tc.epilogue`` reads the op's result, its body multiplies first; otherwise an epilogue is
    added that multiplies. The new ops are built at the insertion point and replace the result of
    `op`.
    """
    users = [use.owner.opview for use in op.out.uses]
    element = op.out.type.element_type
    if len(users) == 1 and isinstance(users[0], tc.EpilogueOp):
        (after,) = users
        after.operation.operands[0] = total
        (sums,) = after.body.blocks[0].arguments
        uses = [(use.owner, use.operand_number) for use in sums.uses]
        sums.set_type(total.type.element_type)
        with ir.InsertionPoint.at_block_begin(after.body.blocks[0]):
            scaled = _scaled(sums, factors, element, op.out.type.rank)
        for owner, number in uses:
            owner.operands[number] = scaled
        return
    after = tc.EpilogueOp(total, op.out.type)
    block = after.body.blocks.append(total.type.element_type, arg_locs=[op.location])
    with ir.InsertionPoint(block):
        scaled = _scaled(block.arguments[0], factors, element, op.out.type.rank)
        tc.YieldOp(scaled)
    op.out.replace_all_uses_with(after.out)


def _scaled(sums: ir.Value, factors: Sequence[ir.Value], element: ir.Type, rank: int) -> ir.Value:
    """Sums times the product of `factors`, rounded to `element` if that is
    narrower; rank: of the output."""
    scalar = ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, []))
    numbers = [tc.ElementOp(factor, scalar, ir.F32Type.get()).value for factor in factors]
    alpha = arith.mulf(*numbers) if len(numbers) == 2 else numbers[0]
    scaled = arith.mulf(sums, alpha)
    return scaled if scaled.type == element else arith.truncf(element, scaled)
