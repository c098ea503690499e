"""Mma atoms, and the table of all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcir.layout.int_tuple import LayoutError
from tcir.layout.layout import Layout


@dataclass(frozen=True)
class MmaAtom:
    """One warp-level matrix instruction.

    shape:   (M, N, K)
    threads: for each thread of the atom, its number in the warp
    a, b, c: ``(thread, value) -> index`` in the column-major M x K, N x K, M x N matrix, as CuTe's
        ``ALayout``, ``BLayout``, ``CLayout``; D has C's layout
    a_types, c_types: element types of A and B, and of C and D, for which these layouts hold
    a_bits, c_bits: bits of an element of A and B, and of C and D; 32 / bits values share a register
    """

    name: str
    shape: tuple[int, int, int]
    threads: Layout
    a: Layout
    b: Layout
    c: Layout
    a_types: tuple[str, ...]
    c_types: tuple[str, ...]
    a_bits: int
    c_bits: int

    def operand(self, operand: str) -> tuple[Layout, tuple[int, int], int]:
        """Layout, matrix extents and bits of an element of ``"A"``, ``"B"``, ``"C"`` or ``"D"``."""
        m, n, k = self.shape
        match operand:
            case "A":
                return self.a, (m, k), self.a_bits
            case "B":
                return self.b, (n, k), self.a_bits
            case "C" | "D":
                return self.c, (m, n), self.c_bits
        raise LayoutError(f"expected operand A, B, C or D, got {operand}")

    def with_accumulator(self, c_type: str) -> MmaAtom:
        """Returns the atom with the same layouts and with f16 (two values per register) or 32-bit
        elements of C and D.
        """
        if self.a_bits != 16 or "f16" not in self.a_types or c_type not in ("f16", "f32"):
            raise LayoutError(
                f"expected f32 (or f16 for f16 operands) for {self.name}, got {c_type}"
            )
        return replace(self, c_types=(c_type,), c_bits=int(c_type[1:]))

    def register(self, operand: str, value: int) -> tuple[int, int]:
        """Returns the number of the 32-bit register that contains a value, and the value's position
        in it (0: lowest bits).
        """
        per_register = 32 // self.operand(operand)[2]
        return value // per_register, value % per_register


def _table() -> dict[str, MmaAtom]:
    from . import mma_quad_pair, mma_warp

    return {atom.name: atom for atom in (*mma_quad_pair.ATOMS, *mma_warp.ATOMS)}


MMA_ATOMS: dict[str, MmaAtom] = {}


def mma_atom(name: str) -> MmaAtom:
    """Returns the atom called ``name``; a prefix that identifies one atom is enough."""
    found = [atom for key, atom in MMA_ATOMS.items() if key == name or key.startswith(name + ".")]
    exact = [atom for atom in found if atom.name == name]
    if len(exact or found) != 1:
        raise LayoutError(
            f"expected one of {', '.join(a.name for a in found) or ', '.join(MMA_ATOMS)}, "
            f"got {name}"
        )
    return (exact or found)[0]


MMA_ATOMS.update(_table())
