"""Limits that the passes choose, and functions that round to limits. Limits of the hardware are in
`dialect.limits`."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.dialect.limits import FP8, MMA_KINDS, TMEM_ALLOCATION, Legal
from tcir.dialect.ops.block_scaled import ELEMENT_BITS
from tcir.target import TARGETS

MMA_N_STEP = 16
MMA_N = Legal(range(MMA_N_STEP, 257, MMA_N_STEP), "columns", "PTX ISA 9.7.16.2, table 39")
"""N of ``tcgen05.mma.kind::f16`` at M = 128 that the tilings use. The ISA also lists the odd
multiples of 8; CUTLASS (`cute/arch/mma_sm100_umma.hpp`) uses only these."""

MMA_N_PAIR = Legal(range(32, 257, 32), "columns", "PTX ISA 9.7.16.2, table 39")
"""N of the mma of a CTA pair, M = 256: each CTA has half of B's rows. The ISA also lists the odd
multiples of 16, not for i8 nor for transposed bytes."""

BARRIER_BYTES = 1024
"""Shared memory that tilings reserve for mbarriers and the tensor-memory address."""

OVERLAPPED_SLOTS = 4
"""Least slots of a ring with which one warpgroup can keep its next group of wgmma in flight."""

PADDED_UNIT = 128
"""Elements that TMA pads to bytes at a time (CUDA driver API, 16U4_ALIGN16B, 16U6_ALIGN16B)."""

HEADS = range(16, 257, 16)
"""Elements of a head: whole steps of K, no more than N of an instruction."""


BYTE_HEADS = range(32, 257, 32)
"""The same of operands of 8 bits."""

PROMOTED_HEADS = range(32, 129, 32)
"""The same where sums have 13 bits, and those of 128 products are added up in f32."""

BACKWARD_HEADS = Legal(
    range(16, 129, 16),
    "elements",
    "steps of K of 32 bytes; registers of a thread, or columns of tensor memory, for two sums",
)
"""Elements of a head whose gradients a kernel computes."""


def ceil_div(a: int, b: int) -> int:
    """The quotient a / b, rounded up."""
    return -(-a // b)


def round_up(a: int, step: int) -> int:
    """`a` rounded up to a multiple of `step`."""
    return ceil_div(a, step) * step


def equal_widths(extent: int, step: int = MMA_N_STEP) -> list[int]:
    """Multiples of `step`, widest first, that are legal widths of an mma and divide `extent` into
    equal tiles."""
    widths = {
        round_up(ceil_div(extent, tiles), step) for tiles in range(1, ceil_div(extent, step) + 1)
    }
    return sorted((width for width in widths if width in MMA_N), reverse=True)


def tmem_allocation(columns: int) -> int:
    """The smallest allocation of tensor memory that has `columns` columns (at most 512)."""
    return min(size for size in TMEM_ALLOCATION.values if size >= columns)


def _scaled_heads(op: tc.BlockScaledAttentionOp) -> range:
    """Elements of heads with scales: whole steps of K, or units that TMA pads to bytes."""
    step = MMA_KINDS[op.scaled_kind].k
    narrow = any(ELEMENT_BITS[str(each.type.element_type)] < 8 for each in (op.q, op.k))
    if narrow and op.scaled_kind == "mxf8f6f4":
        step = PADDED_UNIT
    return range(step, HEADS[-1] + 1, step)


def no_kernel(op: tc.AttentionOp, target: str) -> str:
    """Reason why no kernel computes an attention on a target; "" if a kernel does."""
    of, heads, why = op.extents(), HEADS, ""
    scaled = isinstance(op, tc.BlockScaledAttentionOp)
    if scaled and not TARGETS[target].tcgen05:
        return (
            "expected a target with tcgen05 for block-scaled queries and keys, got "
            f"{target}: wgmma and mma.sync of sm_90a multiply no block-scaled operands (PTX ISA "
            "9.7.15), tcgen05.mma does (9.7.16.10.7); take sm_100a, or q and k of f8E4M3FN without "
            "scales, one factor each in scale, or f16"
        )
    if op.powers in FP8:
        heads = BYTE_HEADS
        if TARGETS[target].wgmma:
            heads, why = PROMOTED_HEADS, ", sums of 13 bits of at most 128 products"
    for name, legal in (("d", _scaled_heads(op) if scaled else heads), ("e", heads)):
        if of[name] not in legal:
            return (
                f"expected heads of a multiple of {legal.step} elements, {legal[0]} to "
                f"{legal[-1]}, got {of[name]} (a step of K has 32 bytes, and the result has to "
                f"fit N of an instruction{why}); pad them with zeros"
            )
    if not TARGETS[target].wgmma and not TARGETS[target].tcgen05:
        return f"expected a target with wgmma or tcgen05, got {target}"
    return ""
