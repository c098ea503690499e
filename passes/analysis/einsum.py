"""Sums of products over any loops, written as matrix products of regrouped operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tcir.passes.analysis.affine import Form, single_dims


@dataclass(frozen=True)
class Side:
    """An operand of a product, with its dimensions in groups of loops.

    order:  the dimensions in the order of the groups, if a kernel must repack the operand; None: no
            repacking is needed
    shape:  shape of the operand in groups, batch first if there is one
    layout: letters of the last two groups, such as ``mk``
    """

    number: int
    order: tuple[int, ...] | None
    shape: tuple[int, ...]
    layout: str


@dataclass(frozen=True)
class Einsum:
    """``out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]``, where each name stands
    for a group of loops, which may be empty.

    Loops of one iteration belong to no group. groups: the result's dimensions in each group, by its
    name.
    """

    a: Side
    b: Side
    shape: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(
        shapes: Sequence[Sequence[int]], maps: Sequence[Sequence[Form]], out: list[int]
    ) -> Einsum | None:
        """Returns the einsum of two operands of these shapes and indices; None if they do not form
        a product.

        maps: for each dimension of each operand, the loops that index it
        out:  for each dimension of the result, the loop that indexes it
        """
        dims = [single_dims(list(forms)) for forms in maps]
        if None in dims:
            return None
        loops: list[list[int]] = [*dims, out]  # type: ignore[list-item]
        extents = {
            loop: n
            for each, shape in zip(loops, shapes)
            for loop, n in zip(each, shape, strict=True)
        }
        if any(loop not in extents for loop in out):
            return None
        found = (_product(a, b, loops, extents) for a, b in ((0, 1), (1, 0)))
        return next((each for each in found if each is not None), None)


def _product(a: int, b: int, loops: list[list[int]], extents: dict[int, int]) -> Einsum | None:
    several = [[i for i in each if extents[i] != 1] for each in loops]
    mine, other, made = (set(several[i]) for i in (a, b, 2))
    if made - mine - other or (mine ^ other) - made:
        return None
    groups = {
        "b": [i for i in several[2] if i in mine and i in other],
        "m": [i for i in several[2] if i not in other],
        "n": [i for i in several[2] if i not in mine],
        "k": [i for i in several[a] if i in other and i not in made],
    }
    if several[2] != groups["b"] + groups["m"] + groups["n"]:
        return None
    left, right = (
        _side(number, rows, loops[number], several[number], groups, extents)
        for number, rows in ((a, "m"), (b, "n"))
    )
    batch = [prod(extents[i] for i in groups["b"])] if groups["b"] else []
    rest = [prod(extents[i] for i in groups[letter]) for letter in "mn"]
    dims = [tuple(loops[2].index(i) for i in groups[letter]) for letter in "bmn"]
    return Einsum(left, right, (*batch, *rest), tuple(dims if batch else dims[1:]))


def _side(
    number: int,
    rows: str,
    dims: list[int],
    several: list[int],
    groups: dict[str, list[int]],
    extents: dict[int, int],
) -> Side:
    """Operand `number`: K last, or rows last where that is how it lies."""
    size = {letter: prod(extents[i] for i in of) for letter, of in groups.items()}
    batch = (size["b"],) if groups["b"] else ()
    k_last, rows_last = (
        [*groups["b"], *groups[x], *groups[y]] for x, y in ((rows, "k"), ("k", rows))
    )
    if several == rows_last and several != k_last:
        return Side(number, None, (*batch, size["k"], size[rows]), "k" + rows)
    order = None
    if several != k_last:
        units = [d for d, i in enumerate(dims) if extents[i] == 1]
        order = (*units, *(dims.index(i) for i in k_last))
    return Side(number, order, (*batch, size[rows], size["k"]), rows + "k")
