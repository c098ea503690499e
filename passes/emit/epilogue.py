"""Epilogues: the computation between loading sums from tensor memory and storing the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tcir._mlir import arith, ir, memref, vector
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.clone import clone
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import spread

Epilogue: TypeAlias = "Callable[[ir.Value, Sequence[Index]], ir.Value]"
"""``epilogue(sums, at)``: the register tile to store, as many lanes as `sums`, a register tile of
the accumulator, and as many columns, or half of them (`tc.EpilogueOp.gated`); `at`: where its first
column goes in the output, an index per dimension: of lane 0, or of every lane
(``vector<32xindex>``) where lanes have places of their own."""


def rounded(element: ir.Type) -> Epilogue:
    """An epilogue that rounds the sums to `element` if that type is narrower."""

    def epilogue(sums: ir.Value, at: Sequence[Index]) -> ir.Value:
        if sums.type.element_type == element:
            return sums
        return arith.truncf(ir.VectorType.get(sums.type.shape, element), sums)

    return epilogue


def scaled(factors: Sequence[ir.Value], epilogue: Epilogue) -> Epilogue:
    """An epilogue that multiplies the sums by the product of `factors` (memrefs of one number each)
    and then applies `epilogue`."""
    loaded = [memref.load(factor, []) for factor in factors]
    if not loaded:
        return epilogue
    alpha = arith.mulf(*loaded) if len(loaded) == 2 else loaded[0]
    return lambda sums, at: epilogue(arith.mulf(sums, vector.broadcast(sums.type, alpha)), at)


Staged: TypeAlias = "Mapping[ir.OpView, Callable[[int], ir.Value]]"
"""Loads a register tile of the given number of columns of an element's matrix from shared
memory."""


NO_COLUMNS = -1
"""Stands for no dimension of the output."""


def fused(
    op: tc.EpilogueOp | tc.AttentionOp,
    tensors: Sequence[ir.Value],
    row_dim: int | None,
    column_dim: int | None = None,
    staged: Staged | None = None,
    group: Index | None = None,
) -> Epilogue:
    """An epilogue that computes the body of a ``tc.epilogue`` or ``tc.attention`` on register
    tiles.

    tensors: the kernel's memrefs of the tensors that the body reads
    row_dim: the output's dimension along which lanes go; None: each lane has its own indices
    column_dim: the output's dimension along which columns go; None: the last dimension;
        `NO_COLUMNS`: there is one column, of which a tile may have copies
    staged: loads elements that TMA has brought to shared memory
    group: the group to which all rows of the tile belong
    """
    if column_dim is None:
        column_dim = op.rank - 1
    block = op.body.blocks[0]
    sources = dict(zip(op.elements, tensors, strict=True))
    narrowed = rounded(block.arguments[0].type)

    def load(element: tc.ElementOp, at: Sequence[Index], columns: int) -> ir.Value:
        if staged is not None and element in staged:
            with element.location:
                return staged[element](columns)
        dims, tensor = element.dims, sources[element]
        outer: list[Index] = [group] if element.of_group and group is not None else []
        places = _places([*outer, *(0 if d is None else at[d] for d in dims)])
        kind = ir.VectorType.get([QUARTER_LANES, columns], tensor.type.element_type)
        with element.location:
            loaded = tc.LoadRowsOp(tensor, places, kind)
        for name, dim in (("row_dim", row_dim), ("column_dim", column_dim)):
            if dim is not None and dim in dims:
                loaded.attributes[name] = i64(len(outer) + dims.index(dim))
        return loaded.value

    def epilogue(sums: ir.Value, at: Sequence[Index]) -> ir.Value:
        sums = narrowed(sums, at)
        given = every_other(sums) if len(block.arguments) == 2 else [sums]
        known = dict(zip(block.arguments, given, strict=True))
        shape = given[0].type.shape
        *ops, end = block.operations
        for each in ops:
            known[each.operation.results[0]] = (
                load(each, at, shape[1])
                if isinstance(each, tc.ElementOp)
                else _on_tile(each.operation, known, shape)
            )
        return known[end.operands[0]]

    return epilogue


def _places(numbers: list[Index]) -> list[ir.Value]:
    """Indices of a load: an index for each of `numbers`, or one for each lane where one is so."""
    if any(isinstance(n, ir.Value) and isinstance(n.type, ir.VectorType) for n in numbers):
        return [spread(number).value for number in numbers]
    return index.values(numbers)


def every_other(tile: ir.Value) -> list[ir.Value]:
    """The even and the odd columns of a register tile."""
    rows, columns = tile.type.shape
    half = ir.VectorType.get([rows, columns // 2], tile.type.element_type)
    return list(ir.Operation.create("vector.deinterleave", [half, half], [tile]).results)


def _on_tile(op: ir.Operation, known: dict[ir.Value, ir.Value], shape: Sequence[int]) -> ir.Value:
    """The op of a body, on register tiles of `shape`."""
    kind = ir.VectorType.get(shape, op.results[0].type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    if op.name == "arith.constant":
        attributes["value"] = ir.DenseElementsAttr.get_splat(kind, attributes["value"])
    operands = [known[operand] for operand in op.operands]
    return ir.Operation.create(op.name, [kind], operands, attributes, loc=op.location).result


def fragment_epilogue(
    after: tc.EpilogueOp | tc.AttentionOp,
    tensors: Mapping[ir.Value, ir.Value],
    sums: ir.Value,
    place: list[ir.Value],
    past: ir.StringAttr,
) -> ir.Value:
    """Applies the body of `after` to every element of the fragment `sums`; the tile begins at
    `place`.

    tensors: the kernel's values for the tensors that `after` reads
    """
    body, kind = after.body.blocks[0], sums.type
    *_, end = body
    count, (rows, columns) = len(body.arguments), kind.shape
    out = tc.FragmentType.build([rows, columns // count], end.value.type, "C", kind.atom)
    with after.location:
        made = tc.FragmentEpilogueOp(sums, place, past, out)
        block = made.body.blocks.append(*[kind.element] * count, arg_locs=[after.location] * count)
        mapping = dict(tensors)
        with ir.InsertionPoint(block):
            for total, given in zip(block.arguments, body.arguments, strict=True):
                narrow = kind.element != given.type
                mapping[given] = arith.truncf(given.type, total) if narrow else total
            for op in body:
                clone(op, mapping)
    return made.out
