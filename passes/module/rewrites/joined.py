"""Joins tensors along a dimension, together with the ops that compute them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from math import prod

from tcir._mlir import ir, linalg, tensor
from tcir.dialect.attributes import integer, integers
from tcir.dialect.upstream import RESHAPES, names
from tcir.errors import Error
from tcir.passes.analysis.affine import linear_form, single_dim
from tcir.passes.emit.reshape import reshape

INDEXED = names("linalg.index", tensor.ExtractOp)
"""Ops of a body whose results depend on where an element is."""

SLICES, CONCATENATIONS = names(tensor.ExtractSliceOp), names(tensor.ConcatOp)


class DifferentError(Error):
    """Raised if tensors cannot be joined because different ops compute them."""


@dataclass
class Joint:
    """Joins several tensors into one tensor, and emits the ops that compute it at the insertion
    point. If tensors are computed by the same op, that op is applied to joined operands; frozen
    arguments are concatenated. Operands that do not depend on the joined dimension must be the same
    for all.

    available: tensors of the function that are defined before the insertion point
    frozen:    tensors that may be concatenated
    """

    available: Set[ir.Value]
    frozen: Set[ir.Value]
    known: dict[tuple[tuple[ir.Value, ...], int], ir.Value] = field(default_factory=dict)

    def join(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        """Returns the tensors `values`, joined along `dim`; DifferentError if no single op computes
        them together."""
        key = tuple(values), dim
        if key not in self.known:
            self.known[key] = self._joined(values, dim)
        return self.known[key]

    def _joined(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        ops = [None if isinstance(each, ir.BlockArgument) else each.owner for each in values]
        made = [op for op in ops if op is not None]
        if len(made) < len(values):
            return self._concatenated(values, dim)
        first = made[0]
        if any(op.name != first.name for op in made):
            names = ", ".join(dict.fromkeys(op.name for op in made))
            raise DifferentError(f"expected the same op for each product, got {names}")
        if first.name == "tensor.empty":
            kind = self._type(values, dim)
            return tensor.EmptyOp(kind.shape, kind.element_type).result
        if isinstance(first.opview, RESHAPES):
            return self._reshaped(values, dim)
        if first.name in SLICES:
            return self._sliced(values, dim)
        if first.name in CONCATENATIONS:
            return self._rows_of(values, dim)
        if len(first.results) != 1 or not all(_same(first, op) for op in made[1:]):
            raise DifferentError(
                f"expected the same {first.name} for each product, got different ones"
            )
        reads = _reads(first, dim)
        operands = [
            self._operand([op.operands[number] for op in made], *read)
            for number, read in enumerate(reads)
        ]
        new = first.clone()
        for number, operand in enumerate(operands):
            new.operands[number] = operand
        new.results[0].set_type(self._type(values, dim))
        return new.results[0]

    def _operand(self, values: Sequence[ir.Value], read: ir.AffineMap, loop: int) -> ir.Value:
        """An operand of the joined op, whose joined dimension is a loop that `read` maps to it."""
        forms = [{} if _is_constant(each) else linear_form(each) for each in read.results]
        dims = [dim for dim, form in enumerate(forms) if form is None or loop in form]
        if not dims:
            if any(each != values[0] for each in values) or values[0] not in self.available:
                raise DifferentError("expected the same other operands for each product")
            return values[0]
        if len(dims) > 1 or single_dim(forms[dims[0]] or {}) is None:
            raise DifferentError(f"expected columns indexed by one loop, got {read}")
        return self.join(values, dims[0])

    def _reshaped(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        """Joined reshapes: the joined dimension of the result and that of the source have as many
        elements before them, and as many for each of their indices in every tensor."""
        sources = [each.owner.operands[0] for each in values]
        before, after = ([list(each.type.shape) for each in kinds] for kinds in (sources, values))
        outer = prod(after[0][:dim])
        for place, extent in enumerate(before[0]):
            alike = all(
                prod(shape[:place]) == outer and shape[place + 1 :] == before[0][place + 1 :]
                for shape in before
            )
            same = all(shape[dim + 1 :] == after[0][dim + 1 :] for shape in after)
            if alike and same and extent > 1 and after[0][dim] > 1:
                kind = self._type(values, dim)
                return reshape(self.join(sources, place), kind.shape)
        raise DifferentError(
            "expected reshapes that keep what is before the joined dimension, got "
            f"{sources[0].type} to {values[0].type}"
        )

    def _sliced(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        """Joined slices that have all of the joined dimension, and the same of the others."""
        first, *others = [each.owner for each in values]
        for op in (first, *others):
            offsets, sizes, strides = _slice(op)
            whole = offsets[dim] == 0 and sizes[dim] == op.operands[0].type.shape[dim]
            rest = [each[:dim] + each[dim + 1 :] for each in (offsets, sizes, strides)]
            mine = [each[:dim] + each[dim + 1 :] for each in _slice(first)]
            if not whole or strides[dim] != 1 or rest != mine or len(op.operands) != 1:
                raise DifferentError("expected slices of the same other elements, got others")
        kind = self._type(values, dim)
        source = self.join([op.operands[0] for op in (first, *others)], dim)
        offsets, _, strides = _slice(first)
        return tensor.ExtractSliceOp(
            kind, source, [], [], [], offsets, list(kind.shape), strides
        ).result

    def _rows_of(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        """Joined concatenations along another dimension."""
        first, *others = [each.owner for each in values]
        along = integer(first, "dim")
        counts = {(integer(op, "dim"), len(op.operands)) for op in (first, *others)}
        if len(counts) > 1 or along == dim:
            raise DifferentError("expected concatenations along another dimension, got others")
        parts = [
            self.join(list(each), dim)
            for each in zip(*(op.operands for op in (first, *others)), strict=True)
        ]
        return tensor.ConcatOp(self._type(values, dim), along, parts).result

    def _concatenated(self, values: Sequence[ir.Value], dim: int) -> ir.Value:
        if not all(each in self.frozen and each in self.available for each in values):
            raise DifferentError("expected frozen weights, or the same op for each product")
        return tensor.ConcatOp(self._type(values, dim), dim, values).result

    def _type(self, values: Sequence[ir.Value], dim: int) -> ir.RankedTensorType:
        shapes = [list(each.type.shape) for each in values]
        others = {(*shape[:dim], *shape[dim + 1 :]) for shape in shapes}
        kinds = {each.type.element_type for each in values}
        if len(others) > 1 or len(kinds) > 1:
            types = ", ".join(str(each.type) for each in values)
            raise DifferentError(
                f"expected tensors that differ in dimension {dim} only, got {types}"
            )
        shapes[0][dim] = sum(shape[dim] for shape in shapes)
        return ir.RankedTensorType.get(shapes[0], *kinds)


def _reads(op: ir.Operation, dim: int) -> list[tuple[ir.AffineMap, int]]:
    """Maps of the operands of an op on tensors, and the loop of dimension `dim` of its result;
    DifferentError if it has none."""
    if op.name.startswith(("arith.", "math.")) and len(op.operands):
        same = ir.AffineMap.get_identity(op.results[0].type.rank)
        return [(same, dim)] * len(op.operands)
    maps = linalg.get_indexing_maps(op) if op.name.startswith("linalg.") else None
    if maps is None:
        raise DifferentError(f"expected elementwise ops, got {op.name}")
    found = [ir.AffineMapAttr(each).value for each in maps]
    return [(each, ir.AffineDimExpr(found[-1].results[dim]).position) for each in found]


def _slice(op: ir.Operation) -> list[list[int]]:
    """Offsets, sizes and strides of a slice."""
    return [integers(op, f"static_{name}") for name in ("offsets", "sizes", "strides")]


def _is_constant(index: ir.AffineExpr) -> bool:
    return isinstance(index, ir.AffineConstantExpr)


def _same(a: ir.Operation, b: ir.Operation) -> bool:
    """Whether two ops compute the same of their operands, at every index."""
    if _properties(a) != _properties(b) or len(a.operands) != len(b.operands):
        return False
    if not len(a.regions):
        return True
    (one,), (other,) = a.regions[0].blocks, b.regions[0].blocks
    if len(one.arguments) != len(other.arguments):
        return False
    known = dict(zip(one.arguments, other.arguments, strict=True))
    for mine, theirs in zip_longest(one.operations, other.operations):
        if mine is None or theirs is None or mine.operation.name in INDEXED:
            return False
        if _properties(mine.operation) != _properties(theirs.operation):
            return False
        if [known.get(each, each) for each in mine.operands] != list(theirs.operands):
            return False
        known.update(zip(mine.results, theirs.results, strict=True))
    return True


def _properties(op: ir.Operation) -> object:
    kinds = [str(getattr(each.type, "element_type", each.type)) for each in op.results]
    return op.name, kinds, {name: str(op.attributes[name]) for name in op.attributes}
