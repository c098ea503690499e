"""Views of several operands: A · B → C of an mma; a tiled copy and its two sides."""

from __future__ import annotations

from typing import Any

from tcir.layout import (
    LayoutError,
    TiledCopy,
    copy_atom,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_mma,
    mma_atom,
)
from tcir.layout.atoms.copy import REGISTERS

from .fragments import Owners, grid_of, legend_of, mma_view, position_in_register, table_of
from .picture import BLANK, Grid, Picture

Triple = tuple[int, int, int]
Tile = tuple[int | None, ...]
LARGEST = 4096
"""Largest number of elements of a tile that a picture shows readably."""


def product_view(name: str, atoms: Triple = (1, 1, 1), tile: Tile = (None,) * 3) -> Picture:
    """Draws the three matrices of an mma, A to the left of C and B above C, with the thread and the
    register of each element.
    """
    parts = {operand: mma_view(name, operand, atoms, tile) for operand in "ABC"}
    a, b, c = (parts[operand].grids[0].rows for operand in "ABC")
    k = len(b)
    rows = [[BLANK] * k + row for row in b]
    rows += [[*left, *right] for left, right in zip(a, c)]
    gap = min(8, k)
    atom = mma_atom(name)
    shape = " x ".join(map(str, (len(a), len(c[0]), k)))
    return Picture(
        f"{atom.name}: A · B → C, {shape}",
        "A (m x k) to the left of C (m x n), B (k x n) above it. Each cell: the thread (T) that "
        "holds the element, and its register of that operand. D lies as C.",
        [Grid(rows, [f"k{i}" for i in range(k)] + [f"m{i}" for i in range(len(a))],
              [f"k{i}" for i in range(k)] + [f"n{i}" for i in range(len(c[0]))],
              gaps=(gap, gap))],
        parts["A"].legend,
        [line for operand in "ABC" for line in (f"{operand}, {parts[operand].table[0]}",
                                                *parts[operand].table[1:])],
    )  # fmt: skip


def copy_view(
    name: str, mma_name: str, operand: str, atoms: Triple = (1, 1, 1), tile: Tile = (None,) * 3
) -> Picture:
    """Draws a tiled copy for an operand of an mma: above, the side that it reads; below, the side
    that it writes.
    """
    mma = make_tiled_mma(mma_atom(mma_name), atoms, tuple(tile))
    key = "C" if operand == "D" else operand
    bits = mma.atom.operand(key)[2]
    make: dict[str, Any] = {"A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C}
    copy = make[key](copy_atom(name, bits), mma)
    extents = mma.tile_of(key)
    if extents[0] * extents[1] > LARGEST:
        raise LayoutError(f"expected at most {LARGEST} elements to draw, got {extents}")
    axes = {"A": ("m", "k"), "B": ("n", "k"), "C": ("m", "n")}[key]
    sides = [_side(copy, side, bits, extents, axes) for side in "SD"]
    return Picture(
        f"{name} for operand {operand} of {mma.atom.name}: {extents[0]} x {extents[1]}",
        "Above: the thread that names the address of each element (T) and the number of the value "
        "(v) there. Below: the thread and the register that hold it."
        if sides[0][0].title.startswith("reads memory")
        else "Above: the thread and the register that hold each element. Below: the thread that "
        "names its address (T) and the number of the value (v) there.",
        [grid for grid, _ in sides],
        legend_of(bits, copy.size),
        [
            line
            for (grid, table) in sides
            for line in (f"{grid.title}; elements of each thread, by rows:", *table)
        ],
    )


def _side(
    copy: TiledCopy, side: str, bits: int, extents: tuple[int, int], axes: tuple[str, str]
) -> tuple[Grid, list[str]]:
    """Returns the grid of one side of a copy, and its list by threads."""
    space = copy.atom.operation.spaces[side == "D"]
    layout = copy.tv(side)
    owners: Owners = {}
    lists = []
    for thread in range(copy.size):
        mine = []
        for v in range(layout[1].size):
            x, y = layout(thread, v) % extents[0], layout(thread, v) // extents[0]
            register = position_in_register(v, bits) if space == REGISTERS else f"v{v}"
            owners.setdefault((x, y), []).append((thread, register))
            mine.append(str(x * extents[1] + y))
        lists.append((thread, mine))
    verb = "reads" if side == "S" else "writes"
    where = REGISTERS if space == REGISTERS else "memory"
    return grid_of(owners, *extents, axes, (8, 8), title=f"{verb} {where}"), table_of(lists)
