"""Fields of the 32-bit instruction descriptors of tcgen05.mma (PTX ISA 9.7.16.4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.machine.numerics.formats import ELEMENT_BITS
from tcir.machine.refusal import DescriptorError


@dataclass(frozen=True)
class DescriptorFields:
    """The bits of an instruction descriptor. Every method raises DescriptorError for a value that
    is not allowed.

    kind: the `.kind` of the instruction; source: section of the ISA that describes the descriptor.
    """

    bits: int
    kind: str
    source: str

    def check_range(self) -> None:
        if not 0 <= self.bits < 1 << 32:
            raise DescriptorError("instruction descriptor", hex(self.bits), "32 bits", self.source)

    def field(self, low: int, width: int = 1) -> int:
        return (self.bits >> low) & ((1 << width) - 1)

    def zero(self, low: int, width: int = 1, why: str = "0 (reserved)") -> None:
        """Checks bits that must be zero."""
        value = self.field(low, width)
        if value:
            name = f"bit {low}" if width == 1 else f"bits {low + width - 1}..{low}"
            raise DescriptorError(f"instruction descriptor {name}", value, why, self.source)

    def element(self, name: str, low: int, width: int, types: dict[int, str]) -> str:
        """Returns the element type that a code stands for."""
        code = self.field(low, width)
        if code not in types:
            allowed = ", ".join(f"{c} ({t})" for c, t in types.items())
            raise DescriptorError(f"kind {self.kind}: {name} code", code, allowed, self.source)
        return types[code]

    def major(self, operand: str, low: int, element: str) -> str:
        """Returns the major dimension of an operand, "K" or "MN"."""
        if not self.field(low):
            return "K"
        if ELEMENT_BITS[element] < 8:
            raise DescriptorError(
                f"{operand} major (bit {low})",
                "1 (MN-major)",
                f"0 (K-major) for {element}",
                "4- and 6-bit types cannot be transposed, PTX ISA 9.7.16.10.3",
            )
        return "MN"
