"""Shared-memory matrix descriptors and instruction descriptors, encoded as the PTX ISA
specifies."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.dialect.limits import ATOM_32B, MMA_K_BYTES, MN_MAJOR_GROUP, SWIZZLE_ATOM_ROWS

SWIZZLE_CODE = {"NONE": 0, ATOM_32B: 1, "128B": 2, "64B": 4, "32B": 6}
"""Bits 63..61 of a matrix descriptor (PTX ISA 9.7.16.4.1)."""

WGMMA_SWIZZLE_CODE = {"NONE": 0, "128B": 1, "64B": 2, "32B": 3}
"""Bits 63..62 of a wgmma descriptor."""

ELEMENT_CODE = {"f16": 0, "bf16": 1, "f32": 2, "f8E4M3FN": 0, "f8E5M2": 1, "i8": 1, "u8": 0}
"""A and B type in an instruction descriptor; the kinds f16, tf32, f8f6f4 and i8 each have their own
(PTX ISA 9.7.16.4.2, table 42); u8 is unsigned i8."""
RESULT_CODE = {"f32": 1, "i32": 2}
"""D type in an instruction descriptor (same table)."""


@dataclass(frozen=True)
class OperandTile:
    """The static part of a swizzled operand tile ``[mn, k]``: see `tcir.dialect.types.SmemType`.

    span: bytes per row of a swizzle-span column; element_bytes: bytes of one element.
    """

    mn: int
    k: int
    element_bytes: int
    major: str
    swizzle: str
    span: int

    @property
    def stride_offset(self) -> int:
        """SBO, the stride byte offset: bytes from one group of 8 rows to the next (PTX ISA
        9.7.16.3.2, swizzled layouts), or from one group of 4 rows for MN-major tiles with atoms of
        32 bytes."""
        group = MN_MAJOR_GROUP[self.swizzle] if self.major == "MN" else SWIZZLE_ATOM_ROWS
        return group * self.span

    @property
    def leading_offset(self) -> int:
        """LBO, the leading byte offset: bytes between swizzle-span columns of MN-major tiles.
        K-major tiles use it only without a swizzle."""
        if self.major == "MN":
            return self.k * self.span
        return self.mn * self.span if self.swizzle == "NONE" else 0

    def constant_bits(self) -> int:
        """The bits of the descriptor except its start address: the offsets, the constant 1, and the
        swizzle."""
        return (
            _field(self.leading_offset >> 4, 16, 14)
            | _field(self.stride_offset >> 4, 32, 14)
            | 1 << 46
            | SWIZZLE_CODE[self.swizzle] << 61
        )

    def wgmma_bits(self) -> int:
        """Like `constant_bits`, for a descriptor of wgmma, which encodes the swizzle differently
        (PTX ISA 9.7.15.5.1.2.2)."""
        return (
            _field(self.leading_offset >> 4, 16, 14)
            | _field(self.stride_offset >> 4, 32, 14)
            | WGMMA_SWIZZLE_CODE[self.swizzle] << 62
        )

    def slice_offset(self, index: int) -> int:
        """Bytes from the tile's start to K slice `index`, before the swizzle.

        In a K-major tile a slice takes 32 bytes of the swizzle span, and the next span is in the
        next column; without a swizzle a slice takes two columns of 16 bytes. In an MN-major tile
        each k of the earlier slices takes a row of one span.
        """
        if self.major == "K":
            column, inside = divmod(index * MMA_K_BYTES, self.span)
            return column * self.mn * self.span + inside
        return index * (MMA_K_BYTES // self.element_bytes) * self.span


def _field(value: int, shift: int, bits: int) -> int:
    if not 0 <= value < 1 << bits:
        raise ValueError(f"expected a field of {bits} bits, got {value}")
    return value << shift


def instruction_descriptor(
    *,
    m: int,
    n: int,
    a: str,
    b: str,
    a_major: str,
    b_major: str,
    d: str = "f32",
    selector: int | None = None,
) -> int:
    """Descriptor of the mma kinds without block scales (PTX ISA 9.7.16.4.2, table 42).

    selector: selector of the metadata of a sparse A; None: A is dense
    """
    return (
        (0 if selector is None else 1 << 2 | _field(selector, 0, 2))
        | RESULT_CODE[d] << 4
        | ELEMENT_CODE[a] << 7
        | ELEMENT_CODE[b] << 10
        | (a_major == "MN") << 15
        | (b_major == "MN") << 16
        | _field(n // 8, 17, 6)
        | _field(m // 16, 24, 5)
    )
