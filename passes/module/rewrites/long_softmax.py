"""Maximum and sum of exponentials of few long rows: both of a part at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcir._mlir import arith, ir, linalg, tensor
from tcir.dialect.upstream import names
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.element_graph import Dims, ElementGraph, NotRaised, Number
from tcir.passes.analysis.reductions import is_reduction
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.functions import constant_number
from tcir.passes.emit.generic import generic, zeros
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passes.module.rewrites.long_rows import Divided, division_of, partial_of, whole_of

MAXIMA = names(arith.MaximumFOp, arith.MaxNumFOp)
"""Ops that find the largest element."""


def divide_long_softmax(module: ir.Module) -> None:
    """Divides the maximum of few long rows, and the sum of exponentials of the differences from it,
    into parts that are read once for both.

    Before::

        %m = linalg.generic ins(%x : tensor<4x4194304xf32>) … arith.maximumf
        %s = linalg.generic ins(%e) … arith.addf     // %e = exp(%x - %m)

    After::

        %mp = linalg.generic ins(%p : tensor<4x256x16384xf32>) … arith.maximumf
        %sp = linalg.generic ins(%p, %mp) … arith.addf of exp(%p - %mp)
        %both = tensor.concat dim(0) %mp, %sp : … -> tensor<2x4x256xf32>
        %m = … the largest %mp of %both
        %s = … the sum of %sp exp(%mp - %m) of %both
        %rows = tensor.concat dim(0) %m, %s : … -> tensor<2x4xf32>

    A part of -inf is one whose largest is 0, so that its sum is 0; the sum of a row of -inf is NaN,
    as before.
    """
    for function in functions_with_body(module):
        for op in [each.operation for each in function.entry_block]:
            if (pair := _pair_of(op)) is not None:
                made = pair.largest.results[pair.division.number], pair.total
                with ir.InsertionPoint(pair.largest), pair.largest.location:
                    for old, new in zip(made, pair.divided(), strict=True):
                        old.replace_all_uses_with(reshape(new, old.type.shape))
                op.erase()
                pair.largest.erase()


@dataclass(frozen=True)
class _Pair:
    """A maximum, how it is divided, the tensor whose rows it is of, and the sum."""

    largest: ir.Operation
    division: Divided
    rows: ir.Value
    total: ir.Value

    def divided(self) -> tuple[ir.Value, ir.Value]:
        """Builds both reductions; returns the maximum and the sum."""
        op, division = self.largest, self.division
        start = division.start(op)
        parts = partial_of(op, division)
        both = _together(parts, self._sums(parts))
        parts, sums = _apart(both)
        whole = whole_of(op, division, parts, start)
        rank = start.type.rank
        every = ir.AffineMap.get_identity(rank + 1)
        row = ir.AffineMap.get(rank + 1, 0, list(every.results)[:rank])
        maps = [ir.AffineMapAttr.get(each) for each in (every, every, row, every)]
        empty = tensor.EmptyOp(parts.type.shape, parts.type.element_type).result

        def scaled(largest: ir.Value, total: ir.Value, of_row: ir.Value, _: ir.Value) -> ir.Value:
            return arith.mulf(total, _power(arith.subf(largest, of_row)))

        loops = ["parallel"] * (rank + 1)
        terms = generic([parts, sums, whole], empty, maps, loops, scaled)
        none = zeros(start.type.shape, start.type.element_type)
        total = generic([terms], none, [maps[0], maps[2]], [*loops[1:], "reduction"], arith.addf)
        return _apart(_together(whole, total))

    def _sums(self, parts: ir.Value) -> ir.Value:
        """The sum of exponentials of each part."""
        loop, count = self.division.loop, self.division.parts
        shape = list(self.rows.type.shape)
        rank, kind = len(shape), parts.type.element_type
        part, inner = ir.AffineDimExpr.get(rank), ir.AffineDimExpr.get(loop)
        places = [ir.AffineDimExpr.get(n) for n in range(rank)]
        places[loop : loop + 1] = [part, inner]
        shape[loop : loop + 1] = [count, shape[loop] // count]
        out = value(list(linalg.get_indexing_maps(self.largest))[-1])
        maps = [places, [*out.results, part], [*out.results, part]]
        infinite = ir.FloatAttr.get(kind, -float("inf"))

        def power(number: ir.Value, largest: ir.Value, total: ir.Value) -> ir.Value:
            none = arith.cmpf(arith.CmpFPredicate.OEQ, largest, arith.ConstantOp(kind, infinite))
            zero = arith.ConstantOp(kind, ir.FloatAttr.get(kind, 0.0)).result
            largest = arith.select(none, zero, largest)
            return arith.addf(_power(arith.subf(number, largest)), total)

        return generic(
            [reshape(self.rows, shape), parts],
            zeros(parts.type.shape, kind),
            [ir.AffineMapAttr.get(ir.AffineMap.get(rank + 1, 0, each)) for each in maps],
            ["reduction" if n == loop else "parallel" for n in range(rank + 1)],
            power,
        )


def _power(number: ir.Value) -> ir.Value:
    return ir.Operation.create("math.exp", results=[number.type], operands=[number]).result


def _together(first: ir.Value, second: ir.Value) -> ir.Value:
    """Two tensors as one, the first and the second of its outermost dimension."""
    kind = ir.RankedTensorType.get([2, *first.type.shape], first.type.element_type)
    alone = [reshape(each, [1, *each.type.shape]) for each in (first, second)]
    return ir.Operation.create(
        "tensor.concat", results=[kind], operands=alone, attributes={"dim": i64(0)}
    ).result


def _apart(both: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The tensors of `_together`."""
    shape, kind = list(both.type.shape)[1:], both.type.element_type

    def half(number: int) -> ir.Value:
        attributes = {
            "static_offsets": [number, *[0] * len(shape)],
            "static_sizes": [1, *shape],
            "static_strides": [1] * (len(shape) + 1),
        }
        op = ir.Operation.create(
            "tensor.extract_slice",
            results=[ir.RankedTensorType.get([1, *shape], kind)],
            operands=[both],
            attributes={
                **{name: ir.DenseI64ArrayAttr.get(each) for name, each in attributes.items()},
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
            },
        )
        return reshape(op.result, shape)

    return half(0), half(1)


# --- what is a pair --------------------------------------------------------------------------


@dataclass
class _Elements:
    """Elements of tensors as expressions of those in memory and of reductions."""

    rank: int
    leaves: dict[Number, tuple[ir.Value, Dims]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = ElementGraph(self.rank, (0, 0), self._leaf)

    def _leaf(self, tensor: ir.Value, dims: Dims) -> Number | None:
        if isinstance(tensor, ir.BlockArgument) or is_reduction(tensor.owner):
            found = Number(None, name="element")
            self.leaves[found] = tensor, dims
            return found
        return None


def _pair_of(op: ir.Operation) -> _Pair | None:
    """The maximum from which an op sums the exponentials of the differences, if it does."""
    if not op.name.startswith("linalg.") or (division := division_of(op)) is None:
        return None
    start = division.start(op)
    zero = is_op(start, "linalg.fill") and constant_number(start.owner.operands[0]) == 0.0
    sums = division.how.combine.operation.name == "arith.addf"
    if not zero or not sums or not _reads_alone(op, division):
        return None
    try:
        return _largest_of(op.operands[0], division, op.results[division.number])
    except NotRaised:
        return None


def _largest_of(powers: ir.Value, of_total: Divided, total: ir.Value) -> _Pair | None:
    rank = powers.type.rank
    elements, dims = _Elements(rank), tuple(range(rank))
    power = elements.graph.of(powers, dims)
    if _name(power) != "math.exp" or _name(power.operands[0]) != "arith.subf":
        return None
    number, largest = power.operands[0].operands
    if largest not in elements.leaves:
        return None
    result, at = elements.leaves[largest]
    if isinstance(result, ir.BlockArgument):
        return None
    op = result.owner
    division = division_of(op)
    if (
        division is None
        or (division.loop, division.parts) != (of_total.loop, of_total.parts)
        or division.how.combine.operation.name not in MAXIMA
        or op.results[division.number] != result
        or not _reads_alone(op, division)
        or op.operands[0].type.shape != powers.type.shape
        or elements.graph.of(op.operands[0], dims) is not number
    ):
        return None
    shape = powers.type.shape
    rows = [dim for dim in dims if dim != division.loop and shape[dim] != 1]
    indexed = [dim for dim in at if dim is not None and shape[dim] != 1]
    return _Pair(op, division, op.operands[0], total) if indexed == rows else None


def _name(number: Number) -> str:
    return "" if number.op is None else number.op.name


def _reads_alone(op: ir.Operation, division: Divided) -> bool:
    """Whether a reduction combines the elements of one tensor as they are, each once."""
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    argument = op.regions[0].blocks[0].arguments[0]
    one = len(op.operands) == 1 + len(op.results) and division.how.element == argument
    return one and maps[0] == ir.AffineMap.get_identity(maps[0].n_dims)
