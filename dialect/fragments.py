"""Fragments of an mma atom: which elements each thread holds, and which instructions can load them.

Elements and instructions are derived from the atom's thread-value layouts in `tcir.layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tcir.dialect.limits import WARP
from tcir.layout.atoms import MmaAtom, mma_atom

MATRIX_ROWS = 8
ROW_BYTES = 16
WORD_BYTES = 4

PTX_TYPE = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2",
            "i8": "s8"}  # fmt: skip
"""MLIR element type of A and B -> multiplicand type of mma.sync (PTX ISA 9.7.14.5)."""

DEFAULT_ATOM = {
    "f16": "mma.m16n8k16.f16",
    "bf16": "mma.m16n8k16.f16",
    "f32": "mma.m16n8k8.tf32",
    "f8E4M3FN": "mma.m16n8k32.b8",
    "f8E5M2": "mma.m16n8k32.b8",
    "i8": "mma.m16n8k32.b8",
}
"""The atom with the longest K, by type."""

MAJORS = ("K", "MN")
ROW = "row"
"""Operand name of a fragment that holds one number per row of C."""
ROWS_OF_THREAD = 2
"""Rows of an atom's C in which a thread holds elements: r and r + 8 (PTX ISA 9.7.14.5)."""


def accumulator_type(element: str) -> str:
    """Type of the sums of a product: ``i32`` for integer operands, ``f32`` for all others."""
    return "i32" if element == "i8" else "f32"


@dataclass(frozen=True)
class CoreMatrix:
    """A matrix of eight rows of 16 bytes along K. A warp holds it in one 32-bit register per
    thread.

    mn, k: coordinates of the first element of row 0; thread 4g + c holds 32-bit word c of row g
    """

    mn: int
    k: int


@lru_cache(maxsize=64)
def elements(atom_name: str, operand: str) -> tuple[tuple[tuple[tuple[int, int], ...], ...], ...]:
    """Coordinates ``(row, column)`` of the elements that each register of each lane holds, as
    ``[register][lane]``; the element in the register's lowest bits comes first."""
    atom: MmaAtom = mma_atom(atom_name)
    layout, (rows, _), bits = atom.operand(operand)
    per = 32 // bits
    count = layout[1].size // per
    return tuple(
        tuple(
            tuple(
                (index % rows, index // rows)
                for index in (layout(lane, register * per + i) for i in range(per))
            )
            for lane in range(WARP)
        )
        for register in range(count)
    )


@lru_cache(maxsize=64)
def matrices(atom_name: str, operand: str) -> tuple[CoreMatrix, ...] | None:
    """Returns, for each register of an atom's operand, the matrix of 8 rows of 16 bytes that
    `ldmatrix` loads to it; None if a register does not hold part of such a matrix."""
    found = []
    for register in elements(atom_name, operand):
        mn, k = register[0][0]
        per = len(register[0])
        for lane, held in enumerate(register):
            g, c = divmod(lane, 4)
            if held != tuple((mn + g, k + c * per + i) for i in range(per)):
                return None
        found.append(CoreMatrix(mn, k))
    return tuple(found)


def loads_for(atom: str, operand: str, major: str, element_bytes: int) -> tuple[str, str]:
    """Returns the instruction that loads a fragment from a tile (``ldmatrix``, ``ldmatrix.trans``
    or ``loads``), and the reason if ldmatrix cannot load it; the reason is "" if it can (PTX ISA
    9.7.14.5.15)."""
    if matrices(atom, operand) is None:
        return "loads", f"registers of {operand} of {atom} are no rows of 16 bytes"
    if major == "K":
        return "ldmatrix", ""
    if element_bytes == 2:
        return "ldmatrix.trans", ""
    return "loads", (
        f"the tile is {major}-major and ldmatrix.trans transposes units of 16 bits, elements have "
        f"{8 * element_bytes}"
    )


@dataclass(frozen=True)
class WarpShare:
    """One warp's part of a fragment: a grid of whole mma atoms.

    rows, columns: extents of the warp's part
    atom_rows, atom_columns: extents of the atom
    registers:     32-bit registers of a thread for one atom
    """

    rows: int
    columns: int
    atom_rows: int
    atom_columns: int
    registers: int

    def atoms(self) -> list[tuple[int, int]]:
        """First row and column of every atom, row by row."""
        return [
            (row, column)
            for row in range(0, self.rows, self.atom_rows)
            for column in range(0, self.columns, self.atom_columns)
        ]


def share(atom_name: str, operand: str, shape: list[int], warps: tuple[int, int]) -> WarpShare:
    """The part of a fragment of `shape` that each warp holds if ``warps`` = (m, n) warps divide the
    CTA's tile equally."""
    atom = mma_atom(atom_name)
    if operand == ROW:  # the rows of C that a thread has
        return WarpShare(shape[0] // warps[0], 1, atom.shape[0], 1, ROWS_OF_THREAD)
    layout, (atom_rows, atom_columns), bits = atom.operand(operand)
    rows, columns = shape
    divisor = {"A": (warps[0], 1), "B": (warps[1], 1), "C": warps}[operand]
    return WarpShare(
        rows // divisor[0],
        columns // divisor[1],
        atom_rows,
        atom_columns,
        layout[1].size * bits // 32,
    )


def warp_origin(
    operand: str, part: WarpShare, warps: tuple[int, int], warp: int
) -> tuple[int, int]:
    """First row and column of a warp's part of the CTA's fragment."""
    m, n = warp % warps[0], warp // warps[0]
    match operand:
        case "A" | "row":
            return m * part.rows, 0
        case "B":
            return n * part.rows, 0
    return m * part.rows, n * part.columns
