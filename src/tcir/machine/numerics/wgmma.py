"""Arithmetic of `wgmma.mma_async`: each instruction is one fused sum (see `fused`).

For f16, bf16 and tf32 operands the sum keeps 25 bits below the largest exponent, as `mma.sync` does
on Hopper. For fp8 operands it keeps 13 bits, and an f32 result has 13 fraction bits. The non-zeros
of a sparse A also form one sum. Integers are exact. Sources: public bit-level studies of H100 and
H200 (MMA-Sim, arXiv 2511.10909; the MATLAB models of arXiv 2512.07004).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.numerics.formats import INTEGERS
from tcir.machine.numerics.fused import NAN, FusedParams, fused_mma, integer_mma
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.numerics.warp_mma import HOPPER
from tcir.machine.numerics.warp_mma_exact import bit_sum

FP8_WINDOW, FP8_LOST = 13, 10
"""Bits kept below the largest exponent; low bits of an f32 result that are zero."""


@dataclass(frozen=True)
class WgmmaTypes:
    """Element types and operand signs of one instruction."""

    types: MmaTypes
    saturate: bool = False


def wgmma_product(
    a: np.ndarray,
    b: np.ndarray,
    d: NDArray[np.uint32] | None,
    product: WgmmaTypes,
    select: NDArray[np.int32] | None = None,
) -> NDArray[np.uint32]:
    """D = A · Bᵀ + D for codes a [M, K], b [N, K] and d uint32 [M, N]; d is None if scale-d is
    false.

    select: k of each stored element of a sparse A, int32 [M, K / 2]; a is then [M, K / 2].
    """
    types = product.types
    if types.a_type in INTEGERS or types.a_type == "b1":
        before = np.zeros((len(a), len(b)), np.uint32) if d is None else d
        if types.a_type == "b1":
            return bit_sum(a, b, before, "and")
        return integer_mma(
            a, b, before, a_type=types.a_type, b_type=types.b_type, select=select,
            saturate=product.saturate,
        )  # fmt: skip
    if types.a_type not in ("e4m3", "e5m2"):
        return fused_mma(a, b, d, types, select=select, params=HOPPER.params(types.d_type))
    zeros = HOPPER.zeros[types.d_type == "f16"]
    result = fused_mma(a, b, d, types, select=select, params=FusedParams(FP8_WINDOW, zeros))
    if types.d_type == "f32":
        number = result != NAN["f32"]
        result[number] &= np.uint32(-1 << FP8_LOST & 0xFFFFFFFF)
        result[result == 0x80000000] = 0
    return result
