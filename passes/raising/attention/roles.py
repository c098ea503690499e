"""Determines for each dimension of an attention's tensors whether it is the batch, the head, the
row, the key or the element."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.passes.analysis.digits import NoDigitsError, Number, joined, size_of, split
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.raising.attention.pattern import Input, Pattern


@dataclass(frozen=True)
class InLayout:
    """A tensor, its shape in four dimensions, and the layout of these dimensions."""

    tensor: ir.Value
    shape: tuple[int, ...]
    layout: str


@dataclass(frozen=True)
class ScoreTensor:
    """A tensor on which scores depend: its shape in four dimensions, and which of the dimensions
    ``[b, h, m, n]`` index it."""

    tensor: ir.Value
    shape: tuple[int, ...]
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Roles:
    """Operands and result of an attention, and the indices ``[b, h, m, n]`` of a score."""

    q: InLayout
    k: InLayout
    v: InLayout
    out: InLayout
    scores: tuple[Number, Number, Number, Number]

    def beside(self, tensor: ir.Value, at: Iterable[Number]) -> ScoreTensor | None:
        """Returns the tensor as a `ScoreTensor`; None unless each of its indices is 0 or the index
        of a dimension of a score, in the same order."""
        rest, dims = joined(at), []
        for dim, index in enumerate(self.scores):
            parts = _split_off(rest, index) if index else None
            if parts is not None:
                rest = parts
                dims.append(dim)
        if rest:
            return None
        sizes = [size_of(index) if d in dims else 1 for d, index in enumerate(self.scores)]
        return ScoreTensor(tensor, tuple(sizes), tuple(dims))


@dataclass(frozen=True)
class _Place:
    """Head digits of a tensor before and after the loop over rows."""

    tensor: ir.Value
    before: Number
    after: Number

    @property
    def heads(self) -> Number:
        """The digits that make up the batch and the head."""
        return joined((self.before, self.after))

    @staticmethod
    def of(tensor: ir.Value, index: Number, rows: Number, last: Number) -> _Place | None:
        """Returns the layout of a tensor, derived from the numbers of its elements in memory; None
        unless the dimension `last` varies fastest."""
        rest = index[: len(index) - len(last)]
        if index[len(rest) :] != last:
            return None
        if not rows:
            return _Place(tensor, rest, ())
        if rows[0] not in rest:
            return None
        at = rest.index(rows[0])
        return _Place(tensor, rest[:at], rest[at + 1 :])


def _split_off(index: Number, first: Number) -> Number | None:
    """The digits of an index after `first`, or None if it does not begin with these."""
    whole, size = size_of(index), size_of(first)
    if whole % size:
        return None
    try:
        begin, rest = split(index, [size, whole // size])
    except NoDigitsError:
        return None
    return rest if begin == first else None


def roles_of(found: Pattern, as_beside: bool = False) -> Roles:
    """Determines which dimension of each tensor is the batch, the head, the row, the key and the
    element; raises `NotRaised` if they do not form an attention.

    as_beside: whether the batch dimensions must be those of the mask or bias tensors, if these have
               any
    """
    rows = _rows(found)
    widths = [d for d in joined(found.dims) if d.dim not in found.q.loops]
    whole = joined(found.dims)
    out = _Place.of(found.result, whole, rows, (widths[0],)) if len(widths) == 1 else None
    if out is None:
        raise NotRaised(
            found.result.owner.operation,
            "expected a result of batches, heads, rows and elements, in this order or rows before "
            f"heads, got {found.result.type}",
        )
    lasts = (found.depth, found.depth, (widths[0],))
    options = (
        list(_places(factor, which, last))
        for factor, which, last in zip(
            (found.q, found.k, found.v), (rows, found.keys, found.keys), lasts, strict=True
        )
    )
    few = list(_heads_beside(found, out.heads))
    for q, k, v in itertools.product(*options):
        heads = _heads(out, q, k, v, few)
        if as_beside and few and heads and heads[0] not in few:
            continue
        if heads is not None:
            batch = size_of(out.heads) // heads[0]
            own = split(out.heads, [batch, heads[0]])
            scores = (own[0], own[1], rows, found.keys)
            return _operands(found, scores, widths[0].extent, heads, (q, k, v, out))
    kinds = ", ".join(str(e.element.places[-1][0].type) for e in (found.q, found.k, found.v))
    raise NotRaised(
        found.result.owner.operation,
        "expected queries, keys and values [batch, head, row, element] or [batch, row, head, "
        f"element], with the same order and heads for keys and values, got {kinds}",
    )


def _rows(found: Pattern) -> Number:
    """Returns the loop over rows. If several loops index queries and not keys, because heads share
    keys, it is the mask's loop, or the longest."""
    own = [d for d in joined(found.dims) if d.dim in found.q.loops - found.k.loops]
    masked = {loop for mask in found.masks for loop in mask.loops}
    named = [d for d in own if d.dim in masked] or own
    return (max(named, key=lambda d: d.extent),) if named else ()


def _places(factor: Input, rows: Number, last: Number) -> Iterator[_Place]:
    """Yields the tensors with an operand's elements, in program order."""
    for tensor, at in factor.element.places:
        if (place := _Place.of(tensor, joined(at), rows, last)) is not None:
            yield place


def _heads_beside(found: Pattern, heads: Number) -> Iterator[int]:
    """Yields numbers of heads of a batch by which tensors beside the scores have an index for each
    batch: the largest first."""
    loops, sizes = {digit.dim for digit in heads}, set()
    for element in found.beside():
        for _, at in element.places:
            batch = tuple(itertools.takewhile(lambda d: d.dim in loops, joined(at)))
            if () != batch != heads and _split_off(heads, batch) is not None:
                sizes.add(size_of(heads) // size_of(batch))
    yield from sorted(sizes, reverse=True)


def _heads(
    out: _Place, q: _Place, k: _Place, v: _Place, beside: Sequence[int]
) -> tuple[int, int] | None:
    """Returns the number of query heads, and the number of them that share keys; None if the
    tensors disagree. beside: numbers of heads to prefer"""
    group = size_of(out.heads) // max(1, size_of(k.heads))
    if q.heads != out.heads or k.heads != v.heads or bool(k.after) != bool(v.after):
        return None
    if k.after != v.after:
        return None
    try:
        if split(out.heads, [size_of(k.heads), group])[0] != k.heads:
            return None
        wanted = {size_of(each.after) for each in (q, out) if each.after}
        wanted |= {size_of(k.after) * group} if k.after else set()
        shape = q.tensor.type.shape
        free = [*beside, *shape[-3:-2], size_of(out.heads)]
        for heads in wanted or free:
            if heads % group == 0 and size_of(out.heads) % heads == 0 and len(wanted) < 2:
                split(out.heads, [size_of(out.heads) // heads, heads])
                return heads, group
    except NoDigitsError:
        return None
    return None


def _operands(
    found: Pattern,
    scores: tuple[Number, Number, Number, Number],
    width: int,
    heads: tuple[int, int],
    places: tuple[_Place, _Place, _Place, _Place],
) -> Roles:
    q, k, v, out = places
    batch, _, m, n = map(size_of, scores)

    def operand(place: _Place, letter: str, head: int, row: int, last: int) -> InLayout:
        if place.after:
            return InLayout(place.tensor, (batch, row, head, last), f"b{letter}hd")
        return InLayout(place.tensor, (batch, head, row, last), f"bh{letter}d")

    d = size_of(found.depth)
    shared = heads[0] // heads[1]
    return Roles(
        operand(q, "m", heads[0], m, d),
        operand(k, "n", shared, n, d),
        operand(v, "n", shared, n, width),
        operand(out, "m", heads[0], m, width),
        scores,
    )
