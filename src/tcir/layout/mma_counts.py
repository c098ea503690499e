"""Number of instructions that a warp issues for a product, and of registers that its threads read
and write.

The numbers follow from the atom: its layouts determine how many values of each operand a thread
has, and 32 bits of values fill a register.
"""

from __future__ import annotations

from dataclasses import dataclass

from .int_tuple import LayoutError
from .tiled_mma import TiledMma


@dataclass(frozen=True)
class MmaCounts:
    """Counts for a matrix product: the ``instructions`` of one warp, and the number of registers
    that one thread reads (a, b, c) and writes (d).
    """

    instructions: int
    a: int
    b: int
    c: int
    d: int

    @property
    def registers(self) -> int:
        """Number of registers that one thread reads and writes in total."""
        return self.a + self.b + self.c + self.d


def mma_counts(mma: TiledMma, m: int, n: int, k: int) -> MmaCounts:
    """Counts for an m x n x k product by ``mma``, whose threads are those of one warp.

    For m8n8k4 pass ``make_tiled_mma("mma.m8n8k4…", (2, 2, 1))``, because the four quad pairs of a
    warp execute one instruction. Raises `LayoutError` unless the product is a whole number of
    instructions.
    """
    if mma.size != 32:
        raise LayoutError(f"expected an mma of the 32 threads of a warp, got {mma.size}")
    instructions = 1
    for name, extent, once, mode in zip("MNK", (m, n, k), mma.atom.shape, mma.atom_layout):
        step = once * mode.size
        if extent % step:
            raise LayoutError(f"expected {name} of a multiple of {step}, got {extent}")
        instructions *= extent // step
    held = {}
    for operand in "ABC":
        layout, _, bits = mma.atom.operand(operand)
        held[operand] = instructions * layout[1].size * bits // 32
    return MmaCounts(instructions, held["A"], held["B"], held["C"], held["C"])
