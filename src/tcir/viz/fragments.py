"""Views of thread-value layouts: mma operands, ldmatrix, tcgen05.ld."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tcir.layout import (
    COPY_OPERATIONS,
    Layout,
    LayoutError,
    copy_atom,
    make_tiled_mma,
    mma_atom,
)
from tcir.layout.tmem import lane_column, ld_st

from .palette import EMPTY, thread
from .picture import Cell, Grid, Key, Picture

MOST = 1 << 16
"""Largest number of elements of a picture."""
Owners = dict[tuple[int, int], list[tuple[int, str]]]
"""(row, column) -> the threads and registers that hold the element."""


def _half(position: int, bits: int) -> str:
    return {32: "", 16: "lh"[position : position + 1], 8: f".{position}"}[bits]


def grid_of(
    owners: Owners,
    rows: int,
    columns: int,
    axes: tuple[str, str],
    gaps: tuple[int, int],
    title: str = "",
) -> Grid:
    """Returns a grid with a cell per element: the first thread that holds it, and its register."""
    cells: list[list[Cell]] = []
    for row in range(rows):
        cells.append([])
        for column in range(columns):
            held = owners.get((row, column))
            if held is None:
                cells[-1].append(Cell(("-",)))
                continue
            threads = [t for t, _ in held]
            shown = f"T{threads[0]}" if len(held) == 1 else f"T{threads[0]}+{len(held) - 1}"
            about = f"{axes[0]} {row}, {axes[1]} {column}: " + "; ".join(
                f"thread {t}, register {r}" for t, r in held
            )
            cells[-1].append(Cell((shown, held[0][1]), thread(threads[0]), about=about))
    return Grid(
        cells, list(map(str, range(rows))), list(map(str, range(columns))), title=title,
        row_axis=axes[0], column_axis=axes[1], gaps=gaps,
    )  # fmt: skip


def position_in_register(value: int, bits: int) -> str:
    """Formats the register of a value, and the part of it, e.g. ``r0h``."""
    per_register = 32 // bits
    return f"r{value // per_register}{_half(value % per_register, bits)}"


def legend_of(bits: int, threads: int = 32) -> list[Key]:
    """Returns the legend: the colours of the threads, and how registers are written for elements of
    ``bits`` bits.
    """
    warps = " of a warp" if threads > 32 else ""
    keys = [Key(thread(4 * g), f"threads {4 * g}-{4 * g + 3}{warps}") for g in range(8)]
    keys += [Key(thread(c), f"thread 4g+{c} (shade)") for c in range(4)]
    note = {
        32: "r0: register 0",
        16: "r0l, r0h: low and high half of register 0",
        8: "r0.1: byte 1 of register 0",
    }[bits]
    return [*keys, Key(EMPTY, note)]


def table_of(items: Sequence[tuple[int, list[str]]]) -> list[str]:
    """Returns lines ``thread: a, b, …``."""
    wide = len(str(items[-1][0]))
    return [f"{number:>{wide}}: {', '.join(values)}" for number, values in items]


def mma_view(
    name: str,
    operand: str,
    atoms: tuple[int, int, int] = (1, 1, 1),
    tile: tuple[int | None, ...] = (None, None, None),
    values: Any = None,
) -> Picture:
    """Draws an operand of an mma (or of a tiled mma): one cell per element, and a list of the
    elements by thread.

    The list gives element numbers of the operand as it is stored in memory for ``.row.col``: A and
    C by rows, B by columns. With ``values``, a matrix in the orientation of the picture (A is M x
    K, B is K x N, C is M x N), the list gives its values instead.
    """
    atom = mma_atom(name)
    bits = atom.operand(operand)[2]
    quad_pair = atom.threads.size < 32
    if quad_pair and atoms == (1, 1, 1):
        layout, extents, threads = (
            atom.operand(operand)[0],
            atom.operand(operand)[1],
            [atom.threads(t) for t in range(atom.threads.size)],
        )
    else:
        mma = make_tiled_mma(atom, atoms, tuple(tile))
        key = "C" if operand == "D" else operand
        layout, extents = mma.layout_tv(key), mma.tile_of(key)
        threads = list(range(mma.size))
    outer, inner = extents
    drawn = (inner, outer) if operand == "B" else (outer, inner)
    if inner * outer > MOST:
        raise LayoutError(f"expected at most {MOST} elements to draw, got {inner * outer}")
    if values is not None and tuple(values.shape) != drawn:
        raise LayoutError(f"expected values of shape {drawn} for {operand}, got {values.shape}")
    owners: Owners = {}
    lists: list[tuple[int, list[str]]] = []
    for t, number in enumerate(threads):
        mine = []
        for v in range(layout[1].size):
            x, y = layout(t, v) % outer, layout(t, v) // outer
            at = (y, x) if operand == "B" else (x, y)
            owners.setdefault(at, []).append((number, position_in_register(v, bits)))
            mine.append(str(x * inner + y) if values is None else f"{values[at]:.2f}")
        lists.append((number, mine))
    axes = {"A": ("m", "k"), "B": ("k", "n")}.get(operand, ("m", "n"))
    what = "element numbers" if values is None else "values"
    return Picture(
        f"{atom.name}, operand {operand}: {drawn[0]} x {drawn[1]}",
        f"Each cell: the thread (T) that holds the element, and its register. {len(threads)} "
        f"threads x {layout[1].size} values of {bits} bits, {', '.join(_types(atom, operand))}."
        + _shared(owners),
        [grid_of(owners, *drawn, axes, (8, 8))],
        legend_of(bits, len(threads)),
        [f"{what} of each thread:", *table_of(lists)],
    )


def _shared(owners: Owners) -> str:
    """Explains "T0+1" if several threads hold an element; else empty."""
    held = owners[0, 0]
    if len(held) == 1:
        return ""
    threads = ", ".join(f"T{t}" for t, _ in held)
    return (
        f" +{len(held) - 1}: that many more threads also hold it; element 0, 0 is in {threads} "
        "(svg and html name the threads of each cell)."
    )


def _types(atom: Any, operand: str) -> tuple[str, ...]:
    types: tuple[str, ...] = atom.a_types if operand in "AB" else atom.c_types
    return types


def matrix_view(name: str) -> Picture:
    """Draws ldmatrix or stmatrix: the rows in memory, and the thread and register that hold each
    element."""
    atom = copy_atom(name, 16)
    load = name.startswith("ldmatrix")
    rows, registers = (atom.src, atom.dst) if load else (atom.dst, atom.src)
    matrices = registers[1].size // 2
    owners: Owners = {}
    lists = []
    for t in range(32):
        mine = []
        for v in range(registers[1].size):
            element = registers(t, v)
            owners.setdefault((element // 8, element % 8), []).append(
                (t, position_in_register(v, 16))
            )
            mine.append(str(element))
        lists.append((t, mine))
    grid = grid_of(owners, 8 * matrices, 8, ("row", "k"), (8, 0))
    labels = [f"matrix {i // 8} row {i % 8} (T{i})" for i in range(8 * matrices)]
    assert all(rows(t, 0) == 8 * t for t in range(8 * matrices))
    return Picture(
        f"{name}: {matrices} matrices of 8 x 8 x 16 bits",
        "Left: which thread names the address of the row. Each cell: the thread and the register "
        f"that {'get' if load else 'give'} the element.",
        [Grid(grid.rows, labels, grid.column_labels, column_axis="k (2 bytes each)", gaps=(8, 0))],
        legend_of(16),
        ["element numbers (8 a row) of each thread:", *table_of(lists)],
    )


def fragment_view(name: str, operand: str, **options: Any) -> Picture:
    """Draws `matrix_view` for ldmatrix and stmatrix, and `mma_view` for other instructions."""
    if name in COPY_OPERATIONS and name.split(".")[0] in ("ldmatrix", "stmatrix"):
        return matrix_view(name)
    return mma_view(name, operand, **options)


_LD = re.compile(r"(?:tcgen05\.(?:ld|st)\.)?(\d+x\d+b(?:x2)?)\.x(\d+)")


def ld_view(words: str, half_split: int | None = None) -> Picture:
    """Draws tcgen05.ld or st, e.g. ``16x256b.x1``: the thread and register of each word."""
    match = _LD.fullmatch(words)
    if match is None:
        raise LayoutError(f"expected SHAPE.xNUM such as 16x256b.x1, got {words}")
    shape, num = match[1], int(match[2])
    if shape == "16x32bx2" and half_split is None:
        half_split = num
    layout: Layout = ld_st(shape, num, half_split)
    owners: Owners = {}
    lists = []
    for t in range(32):
        mine = []
        for r in range(layout[1].size):
            at = lane_column(layout(t, r))
            owners.setdefault(at, []).append((t, f"r{r}"))
            mine.append(f"{at[0]}.{at[1]}")
        lists.append((t, mine))
    lanes, columns = (1 + max(axis) for axis in zip(*owners))
    if columns > 64:
        raise LayoutError(f"expected at most 64 columns to draw, got {columns}; use a smaller .xN")
    return Picture(
        f"tcgen05.ld.{shape}.x{num}: {lanes} lanes x {columns} columns",
        "Tensor memory from the instruction's address on. Each cell is a 32-bit word: the thread "
        "and the register it goes to.",
        [grid_of(owners, lanes, columns, ("lane", "column"), (8, 8))],
        legend_of(32),
        ["lane.column of each thread's registers:", *table_of(lists)],
    )
