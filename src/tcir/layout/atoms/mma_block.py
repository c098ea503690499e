"""The 8 x 8 x 128-bit block of which the whole-warp mma.sync instructions are composed.

In a block, A is 8 rows of 128 bits along K, B is 8 columns of 128 bits along K, and C is 8 x 8.
Thread 4g + c holds bits 32c to 32c + 31 of row g of A and of column g of B, in one register each,
and the elements C[g][2c] and C[g][2c + 1].

The instructions m8n8k16 (8 bits), m8n8k32 (4 bits) and m8n8k128 (1 bit) are one block. All other
whole-warp instructions are tiled mmas of 2 blocks along M, 1 along N, and 1 or 2 along K. There are
two exceptions: f64 has its own blocks (256 bits along K), and m8n8k4 of f16 is a product of eight
threads.
"""

from __future__ import annotations

from tcir.layout.int_tuple import LayoutError
from tcir.layout.layout import Layout

from .mma import MmaAtom

_QUAD = (4, 8)
BLOCK_BITS = 128
TYPES = {
    32: ("tf32",), 16: ("f16", "bf16"), 8: ("e4m3", "e5m2", "s8", "u8"), 4: ("s4", "u4"),
    1: ("b1",),
}  # fmt: skip


def mma_block(element_bits: int) -> MmaAtom:
    """The block for operands of ``element_bits``, with 32-bit accumulators."""
    if element_bits not in TYPES:
        widths = ", ".join(map(str, TYPES))
        raise LayoutError(
            f"expected elements of {widths} bits, which share 32-bit registers, got {element_bits}"
        )
    held = 32 // element_bits
    operand = Layout((_QUAD, held), ((8 * held, 1), 8))
    return MmaAtom(
        f"block.m8n8k{BLOCK_BITS // element_bits}", (8, 8, BLOCK_BITS // element_bits), Layout(32),
        a=operand, b=operand, c=Layout((_QUAD, 2), ((16, 1), 8)),
        a_types=TYPES[element_bits], c_types=("f32", "s32"), a_bits=element_bits, c_bits=32,
    )  # fmt: skip
