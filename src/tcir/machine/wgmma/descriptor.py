"""The matrix descriptor of wgmma: Hopper's bits of what tcgen05 has, too.

Source: PTX ISA 9.7.15.5.1.2.2 (matrix descriptor).
"""

from __future__ import annotations

from functools import lru_cache

from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.descriptor import MatrixDescriptor

SWIZZLES = {0: "NONE", 1: "128B", 2: "64B", 3: "32B"}
"""Bits 63..62. Not Blackwell's three-bit codes."""
_FIELDS = "PTX ISA 9.7.15.5.1.2.2, matrix descriptor of wgmma"


@lru_cache(maxsize=4096)
def decode_matrix(bits: int) -> MatrixDescriptor:
    """Decode and check a descriptor. DescriptorError names the field that is illegal."""

    def field(high: int, low: int) -> int:
        return (bits >> low) & ((1 << (high - low + 1)) - 1)

    for high, low in ((15, 14), (31, 30), (48, 46), (61, 52)):
        if field(high, low):
            raise DescriptorError(
                f"wgmma descriptor bits {high}..{low}",
                hex(field(high, low)),
                "0" + " (0b001 is tcgen05's)" * (high == 48),
                _FIELDS,
            )
    code = field(63, 62)
    if field(51, 49):
        raise DescriptorError(
            "base offset",
            field(51, 49),
            "0: start the swizzle's pattern at a multiple of 1024, 512 or 256 bytes (128B, 64B, "
            "32B)",
            "another row phase than that of the address is not modelled",
        )
    return MatrixDescriptor(
        start=field(13, 0) << 4,
        lbo=field(29, 16) << 4,
        sbo=field(45, 32) << 4,
        swizzle=SWIZZLES[code],
    )
