"""Chains of elementwise ops and reductions over one row, so that one group of threads can hold the
row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from tcir._mlir import ir, linalg
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.reductions import (
    combined,
    is_product,
    is_reduction,
    loop_sizes,
    reads_once,
)
from tcir.passes.emit.diagnostics import is_op

Atom: TypeAlias = "tuple[str, int]"
"""A dimension of the result, ("d", dim), or of a row, ("c", number); ("part of d", dim): an index
that is contiguous in memory with that dimension."""
Symbol: TypeAlias = "tuple[Atom, ...] | None"
"""An index: of no dimension (0), of one, or of several joined; None: any other number."""
At: TypeAlias = "tuple[Symbol, ...]"

LONGEST = 50 << 10
"""The most elements of a row that one CTA holds in registers: 1,024 threads, of 50 each."""


@dataclass(frozen=True)
class RowChain:
    """One or several results of a chain of ops whose reductions are all over the same row.

    rows:    dimensions of the first result that index the row, without those of size 1
    columns: sizes of a row's dimensions, without those of size 1
    own:     dimensions of the result along the row: as many as `columns`, or none if the result has
             one element per row
    sums:    the reductions in order, each with its indices as positions in `rows` (None: 0)
    across:  whether memory is contiguous from row to row instead of along a row
    loads:   tensors in memory from which the result is computed, with their indices
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    own: tuple[int, ...]
    sums: tuple[tuple[ir.Value, tuple[int | None, ...]], ...]
    across: bool
    loads: tuple[tuple[ir.Value, At], ...]


def chain_of(result: ir.Value, stored: Collection[ir.Value] = ()) -> RowChain | None:
    """The chain that computes `result` from tensors in memory (arguments and `stored`); None if its
    reductions are over different rows or over windows, or if they are products that read a factor
    repeatedly."""
    walk = _Walk(result, stored)
    if walk.crossed or not walk.sums:
        return None
    at, columns = next(iter(walk.sums.values()))
    if any(each != (at, columns) for each in _without_units(walk.sums.values(), (at, columns))):
        return None
    rows = [dim for symbol in at for _, dim in symbol or ()]
    shape = result.type.shape
    own = tuple(d for d, size in enumerate(shape) if size != 1 and d not in rows)
    if rows != sorted(set(rows)) or (own and tuple(shape[d] for d in own) != columns):
        return None
    if own:
        walk = _Walk(result, stored, own)
        if walk.crossed:
            return None
    across = _across(walk, result, rows, own, columns)
    if across is None:
        return None
    sums = tuple((each, _dims(walk.sums[each][0])) for each in in_order(walk.sums))
    return RowChain(tuple(rows), columns, own, sums, across, tuple(walk.loads))


def joint_chain(results: Sequence[ir.Value], stored: Collection[ir.Value] = ()) -> RowChain | None:
    """The chain that computes several results, each of them an element of the same row, so that a
    group of threads reads the row once for all of them; None if the results do not belong to one
    row."""
    first, *others = (chain_of(each, stored) for each in results)
    if first is None or not others:
        return first
    shape = results[0].type.shape
    sums, loads, read = dict(first.sums), dict.fromkeys(first.loads), _along(first)
    for each, chain in zip(results[1:], others):
        if chain is None or chain.across or chain.own or chain.columns != first.columns:
            return None
        if [each.type.shape[d] for d in chain.rows] != [shape[d] for d in first.rows]:
            return None
        names = dict(zip(chain.rows, first.rows))
        mine = {v: tuple(d if d is None else names[d] for d in at) for v, at in chain.sums}
        if not read & _along(chain) or any(sums.get(v, at) != at for v, at in mine.items()):
            return None
        sums |= mine
        loads |= dict.fromkeys((v, _renamed(at, names)) for v, at in chain.loads)
    if first.across or first.own or any(each.type.element_type.width < 8 for each in results):
        return None
    ordered = tuple((each, sums[each]) for each in in_order(sums))
    return RowChain(first.rows, first.columns, (), ordered, False, tuple(loads))


def in_order(values: Collection[ir.Value]) -> list[ir.Value]:
    """Sorts results of ops of one block into program order."""
    block = next((each.owner.operation.block for each in values), ())
    return [each for op in block for each in op.operation.results if each in values]


def _along(chain: RowChain) -> set[ir.Value]:
    """The tensors in memory of which a row reads other elements in each column."""
    return {
        tensor
        for tensor, at in chain.loads
        if any(symbol and any(kind[-1] == "c" for kind, _ in symbol) for symbol in at)
    }


def _renamed(at: At, names: Mapping[int, int]) -> At:
    """An index in terms of other dimensions of the result."""

    def renamed(atom: Atom) -> Atom:
        kind, number = atom
        return (kind, names.get(number, number)) if kind[-1] == "d" else atom

    return tuple(symbol and tuple(map(renamed, symbol)) for symbol in at)


def loads_of(result: ir.Value) -> list[tuple[ir.Value, At]]:
    """Tensors in memory from which an elementwise result is computed, with their indices."""
    return _Walk(result, ()).loads


def moving(loads: Iterable[tuple[ir.Value, At]], along: Atom) -> list[ir.Type]:
    """Types of the tensors whose element may change with the index `along`. An element of any other
    tensor is loaded once for a run of indices."""
    kind, number = along
    mine = {along, (f"part of {kind}", number)}
    return [
        tensor.type
        for tensor, at in loads
        if any(symbol is None or mine & set(symbol) for symbol in at)
    ]


def goes_along(loads: Iterable[tuple[ir.Value, At]], result: ir.Value) -> bool:
    """Whether most of the bytes that a result reads are contiguous along the last dimension of the
    result."""
    sized = [dim for dim, size in enumerate(result.type.shape) if size != 1]
    along = total = 0
    for tensor, at in loads:
        last = next((s for s, n in zip(at[::-1], tensor.type.shape[::-1]) if n != 1), None)
        total += prod(tensor.type.shape)
        along += prod(tensor.type.shape) * (last == (("d", sized[-1]),) if sized else True)
    return 2 * along > total


def is_single(symbol: Symbol) -> bool:
    """Whether an index is 0, or a single dimension of the result or of a row."""
    return symbol is not None and all(kind in ("d", "c") for kind, _ in symbol) and len(symbol) < 2


def _without_units(
    sums: Collection[tuple[At, tuple[int, ...]]], like: tuple[At, tuple[int, ...]]
) -> list[tuple[At, tuple[int, ...]]]:
    """Replaces by `like` each of the sums that is over the same row, apart from dimensions of size
    1."""
    wanted = [symbol for symbol in like[0] if symbol != ()]
    return [
        like if ([s for s in at if s != ()], columns) == (wanted, like[1]) else (at, columns)
        for at, columns in sums
    ]


def _dims(at: At) -> tuple[int | None, ...]:
    return tuple(symbol[0][1] if symbol else None for symbol in at)


def _across(
    walk: _Walk, result: ir.Value, rows: Sequence[int], own: Sequence[int], columns: Sequence[int]
) -> bool | None:
    """Whether most accesses are contiguous from row to row; None if there are neither loads nor
    stores to tell."""
    sized = [d for d, size in enumerate(result.type.shape) if size != 1]
    if own:
        return sized[-1] in rows
    along = across = 0
    for tensor, at in walk.loads:
        last = next((s for s, n in zip(at[::-1], tensor.type.shape[::-1]) if n != 1), None)
        size = prod(tensor.type.shape)
        if not any(s is None or any(kind != "d" for kind, _ in s) for s in at):
            continue  # the same for all of a row
        if last and last[-1] in (("c", len(columns) - 1), ("part of c", len(columns) - 1)):
            along += size
        elif last and rows and last[-1] in (("d", sized[-1]), ("part of d", sized[-1])):
            across += size
    return None if not along and not across else across > along


@dataclass
class _Walk:
    """What makes a result, with the index of each tensor in terms of the result's.

    own:     dimensions of the result that are those of a row
    loads:   tensors in memory, and their indices
    sums:    reductions that are not within others: indices, sizes of their loops
    crossed: whether one is read at two places
    """

    result: ir.Value
    stored: Collection[ir.Value]
    own: Sequence[int] = ()
    loads: list[tuple[ir.Value, At]] = field(default_factory=list)
    sums: dict[ir.Value, tuple[At, tuple[int, ...]]] = field(default_factory=dict)
    crossed: bool = False
    sizes: dict[Atom, int] = field(default_factory=dict)
    seen: set[tuple[ir.Value, At]] = field(default_factory=set)

    def __post_init__(self) -> None:
        at: list[Symbol] = []
        for dim, size in enumerate(self.result.type.shape):
            atom = ("c", list(self.own).index(dim)) if dim in self.own else ("d", dim)
            self.sizes[atom] = size
            at.append(() if size == 1 else (atom,))
        self._visit(self.result, tuple(at))

    def _visit(self, tensor: ir.Value, at: At) -> None:
        if (tensor, at) in self.seen or not isinstance(tensor.type, ir.RankedTensorType):
            return
        self.seen.add((tensor, at))
        if isinstance(tensor, ir.BlockArgument) or (
            tensor in self.stored and tensor != self.result
        ):
            self.loads.append((tensor, at))
            return
        op = tensor.owner
        if op.name in ("arith.constant", "linalg.fill", "tensor.empty"):
            return
        if isinstance(op.opview, RESHAPES):
            self._visit(op.operands[0], self._through(op, at))
        elif op.name.startswith("linalg.") and linalg.get_indexing_maps(op) is not None:
            self._structured(op, list(op.results).index(tensor), at)
        else:
            for each in op.operands:
                self._visit(each, _alike(at, tensor.type, each.type))

    def _structured(self, op: ir.Operation, number: int, at: At) -> None:
        maps = [value(each) for each in linalg.get_indexing_maps(op)]
        inputs = len(op.operands) - len(op.results)
        out = list(maps[inputs + number].results)
        loops: dict[int, Symbol] = {
            e.position: s for e, s in zip(out, at) if isinstance(e, ir.AffineDimExpr)
        }
        if is_reduction(op):
            self._sum(op, op.results[number], at, maps, loops)
        for operand, each in zip(op.operands, maps):
            self._visit(operand, tuple(_symbol(e, loops) for e in each.results))
        for region in op.regions:
            for inner in region.blocks[0]:
                if inner.operation.name == "tensor.extract":
                    source, *indices = inner.operation.operands
                    self._visit(source, tuple(_loop(each, loops) for each in indices))

    def _sum(
        self,
        op: ir.Operation,
        total: ir.Value,
        at: At,
        maps: Sequence[ir.AffineMap],
        loops: dict[int, Symbol],
    ) -> None:
        """Names the loops of a reduction, if it is one over a row."""
        number = list(op.results).index(total)
        reduced = [dim for dim in range(maps[0].n_dims) if dim not in loops]
        known = loop_sizes(op, maps)
        sizes = [known.get(dim) for dim in reduced]
        within = any(s is None or len(s) > 1 or any(kind != "d" for kind, _ in s) for s in at)
        apart = is_product(op) and not reads_once(op)
        if within or None in sizes or apart or combined(op, number) is None:
            loops.update(dict.fromkeys(reduced))
            return
        columns = tuple(size for size in sizes if size is not None and size != 1)
        if self.sums.setdefault(total, (at, columns)) != (at, columns):
            self.crossed = True
        place = 0
        for dim, size in zip(reduced, sizes):
            loops[dim] = () if size == 1 else (("c", place),)
            if size is not None and size != 1:
                self.sizes["c", place] = size
                place += 1

    def _through(self, op: ir.Operation, at: At) -> At:
        """The index before a reshape."""
        groups = [[ir.IntegerAttr(d).value for d in g] for g in op.attributes["reassociation"]]
        shape = op.operands[0].type.shape
        if op.name == "tensor.expand_shape":
            return tuple(_joined([at[d] for d in group]) for group in groups)
        found: list[Symbol] = [()] * len(shape)
        for symbol, group in zip(at, groups):
            sized = [d for d in group if shape[d] != 1]
            parts: list[Symbol] = [None] * len(sized)
            if len(sized) == 1:
                parts = [symbol]
            elif symbol is not None and [self.sizes[a] for a in symbol] == [
                shape[d] for d in sized
            ]:
                parts = [(atom,) for atom in symbol]
            elif symbol and parts:
                kind, number = symbol[-1]
                parts[-1] = ((f"part of {kind[-1]}", number),)
            for dim, part in zip(sized, parts):
                found[dim] = part
        return tuple(found)


def _alike(at: At, result: ir.Type, operand: ir.Type) -> At:
    """The index of an operand where an op shifts it: known along dimensions of the same size, and
    of size 1."""
    shape = list(getattr(operand, "shape", ()))
    if len(shape) != len(at):
        return (None,) * len(shape)
    sizes = zip(at, shape, result.shape, strict=True)
    return tuple(() if n == 1 else s if n == m else None for s, n, m in sizes)


def _joined(symbols: Sequence[Symbol]) -> Symbol:
    atoms: list[Atom] = []
    for each in symbols:
        if each is None:
            return None
        atoms += each
    return tuple(atoms)


def _loop(index: ir.Value, loops: dict[int, Symbol]) -> Symbol:
    """An index in a body: that of a loop, or any other number."""
    if not is_op(index, "linalg.index"):
        return None
    return loops[ir.IntegerAttr(index.owner.attributes["dim"]).value]


def _symbol(index: ir.AffineExpr, loops: dict[int, Symbol]) -> Symbol:
    """An affine expression of loops, in which loops of size 1 are 0."""
    if isinstance(index, ir.AffineDimExpr):
        return loops[index.position]
    if isinstance(index, ir.AffineConstantExpr):
        return () if index.value == 0 else None
    if isinstance(index, ir.AffineAddExpr):
        sides = [_symbol(each, loops) for each in (index.lhs, index.rhs)]
        return next((b for a, b in (sides, sides[::-1]) if a == ()), None)
    if isinstance(index, ir.AffineMulExpr):
        return () if _symbol(index.lhs, loops) == () else None
    return None
