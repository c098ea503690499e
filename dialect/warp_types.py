"""Types of the warp level: operand tiles in shared memory, and fragments in registers."""

from typing import Any

from tcir._mlir import ir
from tcir.dialect.attributes import integers_of, string_of
from tcir.dialect.types import ShapedType, element_bytes

TAILS = ("", "outer", "inner", "outer inner")
"""Dimensions of a tile that may extend past the tensor: rows, the contiguous one, both."""
GATE_BLOCK = "gate_block"
"""Attribute of ``tc.epilogue``: columns of gates before as many columns of values."""
ATOM_COLUMNS = 8
"""Columns of an atom of C, of which a thread has two (PTX ISA 9.7.14.5)."""
WALK = "walk"
"""Attribute: rows of a fragment are positions on a walk through images of this size."""


class StagedType(ShapedType, name="staged"):
    """A shared-memory tile ``[mn, k]`` read by warps.

    ``!tc.staged<array<i64: mn, k>, element, major, array<i64: bits, base, shift>>``: The ``major``
    dimension (``"K"`` or ``"MN"``) is contiguous, and rows are adjacent. In the byte offset from
    the start of the tile, bits ``[base, base + bits)`` are XORed with the bits ``shift`` positions
    higher. The swizzle does not depend on the tile's address, so tiles may start anywhere.
    """

    example = """
    func.func @example() {
      %tile = "tc.smem_tile"() : () -> !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
      return
    }
    """

    major_attr: Any
    swizzle_attr: Any

    @staticmethod
    def build(
        shape: list[int], element: ir.Type, major: str, swizzle: tuple[int, int, int]
    ) -> "StagedType":
        """Builds the type from Python values."""
        return StagedType.get(
            ir.DenseI64ArrayAttr.get(shape),
            element,
            ir.StringAttr.get(major),
            ir.DenseI64ArrayAttr.get(list(swizzle)),
        )

    @property
    def major(self) -> str:
        """Name of the coordinate that is contiguous: ``"K"`` or ``"MN"``."""
        return string_of(self.major_attr)

    @property
    def swizzle(self) -> tuple[int, int, int]:
        """The swizzle as ``(bits, base, shift)``: the number of bits that are XORed, the lowest of
        them, and the distance to the bits they are XORed with."""
        bits, base, shift = integers_of(self.swizzle_attr)
        return bits, base, shift

    @property
    def pitch(self) -> int:
        """Bytes of one row: the extent of the contiguous dimension in bytes."""
        mn, k = self.shape
        return (k if self.major == "K" else mn) * element_bytes(self.element)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        mn, k = self.shape
        return mn * k * element_bytes(self.element)

    def offset(self, mn: int, k: int) -> int:
        """Byte offset of an element from the start of the tile."""
        outer, inner = (mn, k) if self.major == "K" else (k, mn)
        bits, base, shift = self.swizzle
        byte = outer * self.pitch + inner * element_bytes(self.element)
        return byte ^ ((byte >> shift) & (((1 << bits) - 1) << base))


class FragmentType(ShapedType, name="fragment"):
    """A matrix in the registers of a CTA's warps, distributed as the mma atom requires.

    ``!tc.fragment<array<i64: rows, columns>, element, operand, atom>``: ``operand`` is ``"A"``,
    ``"B"``, ``"C"`` or ``"row"``. In the CTA's tile A is ``[m, k]``, B is ``[n, k]`` and C is ``[m,
    n]``. ``"row"`` is ``[m, 1]``, a number for each row of C, which every thread with elements of
    the row holds. ``atom`` names the instruction as `tcir.layout` does (``"mma.m16n8k16.f16"``).
    The kernel's attribute ``tc.warps = array<i64: m, n>`` defines how warps divide the tile: warp w
    has part ``w mod m`` of the rows of A and C, and part ``w div m`` of the rows of B (the columns
    of C).
    """

    example = """
    func.func @example() {
      %zero = "tc.zero_fragment"()
          : () -> !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
      return
    }
    """

    operand_attr: Any
    atom_attr: Any

    @staticmethod
    def build(shape: list[int], element: ir.Type, operand: str, atom: str) -> "FragmentType":
        """Builds the type from Python values."""
        return FragmentType.get(
            ir.DenseI64ArrayAttr.get(shape),
            element,
            ir.StringAttr.get(operand),
            ir.StringAttr.get(atom),
        )

    @property
    def operand(self) -> str:
        """Name of the operand of the mma: ``"A"``, ``"B"``, ``"C"`` or ``"row"``."""
        return string_of(self.operand_attr)

    @property
    def atom(self) -> str:
        """Name of the mma atom."""
        return string_of(self.atom_attr)
