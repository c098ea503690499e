"""Reshapes of tensors, which change the dimensions but not the order of the elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcir._mlir import ir, tensor


def reshape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """`value` reshaped to `shape` by a collapse, an expansion, or both."""
    old, new = list(value.type.shape), list(shape)
    if old == new:
        return value
    element = value.type.element_type
    groups = _groups(old, new)
    if len(groups) < len(old):
        joined = [prod(old[d] for d in mine) for mine, _ in groups]
        kind = ir.RankedTensorType.get(joined, element)
        value = tensor.CollapseShapeOp(kind, value, [mine for mine, _ in groups]).result
    if len(groups) < len(new):
        kind = ir.RankedTensorType.get(new, element)
        value = tensor.ExpandShapeOp(kind, value, [to for _, to in groups], [], new).result
    return value


def moves_only_units(shape: Sequence[int], permutation: Sequence[int]) -> bool:
    """Whether a permutation of dimensions moves only dimensions of extent 1, so that the order of
    all elements stays the same."""
    rest = [d for d in permutation if shape[d] != 1]
    return rest == sorted(rest)


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Shortest runs of dimensions of `old` and `new` with as many elements; none for a scalar."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        mine, to = [i], [j]
        i, j = i + 1, j + 1
        while (a := prod(old[d] for d in mine)) != (b := prod(new[d] for d in to)):
            if a < b:
                mine.append(i)
                i += 1
            else:
                to.append(j)
                j += 1
        groups.append((mine, to))
    if groups:
        groups[-1][0].extend(range(i, len(old)))
        groups[-1][1].extend(range(j, len(new)))
    return groups
