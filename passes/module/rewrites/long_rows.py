"""Reduces few long rows in parts, and then the results of the parts, so that several CTAs work on a
row."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tcir._mlir import ir, linalg, tensor
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.reductions import (
    Combined,
    combined,
    is_product,
    is_reduction,
    loop_sizes,
)
from tcir.passes.analysis.row_chain import LONGEST
from tcir.passes.emit.clone import clone
from tcir.passes.emit.generic import generic
from tcir.passes.emit.neutral import neutral
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import functions_with_body

LONG = 1 << 14
"""Elements of a row that are worth a CTA's time, if there are fewer CTAs than SMs."""
GROUPS = 256
"""Rows, or parts of them, that keep all SMs busy."""
ENOUGH = 64
"""Rows whose CTAs, on half of the SMs, are faster than the launches of parts are together."""
PARTS = 1 << 10
"""The most parts of a row, which one CTA combines at once."""


def divide_long_rows(module: ir.Module) -> None:
    """Replaces a reduction over few long rows by two reductions.

    Before::

        %s = linalg.reduce { arith.addf } ins(%x : tensor<4x4194304xf32>) outs(%zeros) …

    After::

        %p = tensor.expand_shape %x [[0], [1, 2]] : … into tensor<4x256x16384xf32>
        %t = linalg.generic ins(%p) outs(%neutral : tensor<4x256xf32>) … arith.addf
        %s = linalg.generic ins(%t) outs(%zeros : tensor<4xf32>) … arith.addf

    A sum of floats may differ, because the order of the additions is different. Rows stay whole if
    no divisor of their length is a suitable number of parts.
    """
    for function in functions_with_body(module):
        for op in [each.operation for each in function.entry_block]:
            if (found := division_of(op)) is not None:
                with ir.InsertionPoint(op), op.location:
                    op.results[found.number].replace_all_uses_with(_divided(op, found))
                op.erase()


@dataclass(frozen=True)
class Divided:
    """A reduction to divide.

    number: number of the only result of the reduction that is read
    loop: number of the loop over a long row
    parts: number of parts of a row
    """

    number: int
    loop: int
    parts: int
    how: Combined

    def start(self, op: ir.Operation) -> ir.Value:
        """The initial value of the reduction `op`."""
        return op.operands[len(op.operands) - len(op.results) + self.number]


def division_of(op: ir.Operation) -> Divided | None:
    """Describes an op as a reduction over long rows; None for any other op."""
    used = [n for n, each in enumerate(op.results) if list(each.uses)]
    if len(used) != 1 or not is_reduction(op) or is_product(op):
        return None
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    kept = {e.position for e in maps[-1].results if isinstance(e, ir.AffineDimExpr)}
    (loop, *more) = [dim for dim in range(maps[-1].n_dims) if dim not in kept]
    kinds = ir.AffineDimExpr, ir.AffineConstantExpr
    single = all(isinstance(e, kinds) for each in maps for e in each.results)
    how = combined(op, used[0])
    if more or how is None or not single or _reads_places(how.element):
        return None
    parts = parts_of(loop_sizes(op, maps).get(loop, 1), prod(op.results[used[0]].type.shape))
    return Divided(used[0], loop, parts, how) if parts > 1 else None


def parts_of(length: int, rows: int) -> int:
    """Number of parts into which each of `rows` rows of this length is divided; 1 if the rows stay
    whole."""
    if length <= (LONG if rows < ENOUGH else LONGEST) or not 0 < rows < GROUPS:
        return 1
    fits = [n for n in range(2, PARTS + 1) if length % n == 0 and length // n >= GROUPS]
    enough = (n for n in fits if rows * n >= GROUPS and length // n <= LONG)
    return next(enough, fits[-1] if fits else 1)


def _reads_places(number: ir.Value) -> bool:
    """Whether a number of a body depends on the indices of its loops."""
    if isinstance(number, ir.BlockArgument):
        return False
    op = number.owner
    return op.name in ("linalg.index", "tensor.extract") or any(map(_reads_places, op.operands))


def _divided(op: ir.Operation, found: Divided) -> ir.Value:
    return whole_of(op, found, partial_of(op, found), found.start(op))


def partial_of(op: ir.Operation, found: Divided) -> ir.Value:
    """Builds the reduction of each part."""
    parts, loop, how, block = found.parts, found.loop, found.how, op.regions[0].blocks[0]
    count = len(op.operands) - len(op.results)
    start, total = found.start(op), block.arguments[count + found.number]
    combining = how.combine.operation.results[0]
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    out = maps[count + found.number]
    part, inner = ir.AffineDimExpr.get(out.n_dims), ir.AffineDimExpr.get(loop)
    inputs, reads = [], []
    for operand, each in zip(list(op.operands)[:count], maps):
        shape: list[int] = []
        index: list[ir.AffineExpr] = []
        for size, e in zip(operand.type.shape, each.results):
            along = e == inner
            shape += [parts, size // parts] if along else [size]
            index += [part, inner] if along else [e]
        inputs.append(reshape(operand, shape) if len(shape) > operand.type.rank else operand)
        reads.append(ir.AffineMap.get(out.n_dims + 1, 0, index))
    kind = start.type.element_type
    empty = tensor.EmptyOp([*start.type.shape, parts], kind).result
    low = linalg.fill(neutral(how.combine, kind), outs=[empty])
    reads.append(ir.AffineMap.get(out.n_dims + 1, 0, [*out.results, part]))
    loops = ["reduction" if n == loop else "parallel" for n in range(out.n_dims + 1)]

    def element(*given: ir.Value) -> ir.Value:
        known = dict(zip([*list(block.arguments)[:count], total], given, strict=True))
        return _cloned(combining, block, known)

    return generic(inputs, low, [ir.AffineMapAttr.get(each) for each in reads], loops, element)


def whole_of(op: ir.Operation, found: Divided, partial: ir.Value, start: ir.Value) -> ir.Value:
    """Builds the reduction that combines the results of the parts."""
    how, block = found.how, op.regions[0].blocks[0]
    total = block.arguments[len(op.operands) - len(op.results) + found.number]

    def both(e: ir.Value, so_far: ir.Value) -> ir.Value:
        known = {how.element: e, total: so_far}
        return _cloned(how.combine.operation.results[0], block, known)

    rank = start.type.rank
    whole = ir.AffineMap.get_identity(rank + 1)
    row = ir.AffineMap.get(rank + 1, 0, list(whole.results)[:rank])
    maps_of_parts = [ir.AffineMapAttr.get(each) for each in (whole, row)]
    return generic([partial], start, maps_of_parts, ["parallel"] * rank + ["reduction"], both)


def _cloned(number: ir.Value, block: ir.Block, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """Clones `number` and the ops of the body `block` that compute it from the values in
    `known`."""
    if number in known:
        return known[number]
    if isinstance(number, ir.BlockArgument) or number.owner.operation.block != block:
        return number
    for each in number.owner.operands:
        _cloned(each, block, known)
    clone(number.owner.opview, known)
    return known[number]
