"""Gives products with sums in f16 or bf16, as JAX and hand-written linalg have them, sums in
f32."""

from __future__ import annotations

from tcir._mlir import arith, ir, linalg
from tcir.passes.analysis.contraction import is_contraction, n_loops, value
from tcir.passes.analysis.wrappers import starts_from_zeros
from tcir.passes.emit.generic import generic, zeros
from tcir.passes.emit.tensor_functions import functions_with_body

HALF = ("f16", "bf16")


def widen_half_sums(module: ir.Module) -> None:
    """Replaces f16 and bf16 sums of products by f32 sums that are rounded once, as in the
    reference, cuBLAS and cuDNN."""
    for function in functions_with_body(module):
        for op in [each for each in function.entry_block if _has_half_sums(each)]:
            with ir.InsertionPoint(op), op.location:
                total = _widened(op)
                rounded = arith.truncf(op.results[0].type, total)
            op.results[0].replace_all_uses_with(rounded)
            op.operation.erase()


def _has_half_sums(op: ir.OpView) -> bool:
    if not is_contraction(op) or len(op.operands) != 3 or len(op.results) != 1:
        return False
    block = op.operation.regions[0].blocks[0]
    kinds = {str(each.type) for each in block.arguments}
    names = [each.operation.name for each in block]
    summed = names == ["arith.mulf", "arith.addf", "linalg.yield"]
    if len(kinds) != 1 or kinds.pop() not in HALF or not summed:
        return False
    product, total, end = block
    return (
        list(product.operands) == list(block.arguments)[:2]
        and {*total.operands} == {block.arguments[2], product.results[0]}
        and list(end.operands) == [total.results[0]]
    )


def _widened(op: ir.OpView) -> ir.Value:
    """Computes the same sums in f32."""
    maps = list(linalg.get_indexing_maps(op.operation))
    out = {each.position for each in value(maps[-1]).results if isinstance(each, ir.AffineDimExpr)}
    loops = ["parallel" if n in out else "reduction" for n in range(n_loops(maps[-1]))]
    wide, start = ir.F32Type.get(), op.operands[2]
    if starts_from_zeros(start):
        start = zeros(start.type.shape, wide)
    else:
        start = arith.extf(ir.RankedTensorType.get(start.type.shape, wide), start)

    def element(first: ir.Value, second: ir.Value, total: ir.Value) -> ir.Value:
        product = arith.mulf(*(arith.extf(wide, each) for each in (first, second)))
        return arith.addf(total, product)

    return generic(list(op.operands)[:2], start, maps, loops, element)
