"""Places of the scale factors of ``tcgen05.mma ... .block_scale`` in tensor memory.

Each scale is one byte. For one instruction, scale j of row m (of SFA; of column n for SFB) is at

    lane m % 32 + 32 p for every p in 0..3,   column m / 32,   byte SF id + j

relative to the base address: there are four equal copies, one in each quarter of the lanes. The
    instruction needs 1, 2 or 4 scales per row (scale_vec::1X, ::2X, ::4X).

In a CTA pair with M = 128, each CTA has SFA of its own 64 rows, and SFB is placed as data path B of
D: columns n < N/2 are in lanes n % 32 and 32 + n % 32, the other columns in lanes 64 + n % 32 and
96 + n % 32; the column is (n % (N/2)) / 32. With M = 256, each CTA has SFA of its own 128 rows, and
SFB of all N columns is in both CTAs.

Sources: PTX ISA 9.7.16.10.7; CUTLASS cute/atom/mma_traits_sm100.hpp (tmem_sf_frg); the example
2cta_mma_blockscale_m128 of CUTLASS's CuTeDSL for the pair with M = 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import TmemError
from tcir.machine.tensor_core.instruction_descriptor_scaled import SCALE_IDS

Index = NDArray[np.int64]

ADDRESS_BITS = 0x3FFFFFFF
"""Mask of the address: bits 31..30, in which CUTLASS leaves the SF id, are ignored."""


@dataclass(frozen=True, eq=False)
class ScalePlaces:
    """Places of a scale matrix [rows, scales], relative to its base address.

    `lanes` int64 [copies, rows], `columns` int64 [rows], `bytes` int64 [scales] within the 32-bit
    word. `cta` int64 [copies, rows]: the CTA of the pair that has the copy (0 in cta_group 1).
    """

    lanes: Index
    columns: Index
    bytes: Index
    cta: Index


def _frozen(array: NDArray[np.int64]) -> Index:
    array = np.ascontiguousarray(array, np.int64)
    array.flags.writeable = False
    return array


@cache
def scale_places(
    operand: str, rows: int, scales: int, sf_id: int, *, m: int = 128, cta_group: int = 1
) -> ScalePlaces:
    """Places of the scales of one instruction: SFA (`operand` "A", rows = M) or SFB ("B", rows =
    N).

    `m` is the instruction's M (that of the pair). Raises TmemError for a size or id that the
    hardware does not have.
    """
    if scales not in SCALE_IDS or sf_id not in SCALE_IDS[scales]:
        allowed = ", ".join(f"{s}X: {ids}" for s, ids in SCALE_IDS.items())
        raise TmemError(
            "scale vector and SF id", f"{scales}X: {sf_id}", allowed, "PTX ISA 9.7.16.10.7"
        )
    limit = m if operand == "A" else 256
    if operand not in ("A", "B") or not 1 <= rows <= limit:
        raise TmemError(f"rows of SF{operand}", rows, f"1..{limit}", "PTX ISA 9.7.16.2.1")
    row = np.arange(rows)
    copy = np.arange(4)[:, None]
    if cta_group == 1:
        lanes, columns, cta = row % 32 + 32 * copy, row // 32, 0 * row + 0 * copy
    elif operand == "A":
        own = m // 2
        lanes, columns, cta = row % own % 32 + 32 * copy, row % own // 32, row // own + 0 * copy
    elif m == 256:  # all of SFB in both CTAs: eight copies
        every = np.arange(8)[:, None]
        lanes, columns, cta = row % 32 + 32 * (every % 4), row // 32, every // 4 + 0 * row
    else:
        half, every = rows // 2, np.arange(4)[:, None]
        lanes = row % half % 32 + 64 * (row // half) + 32 * (every % 2)
        columns, cta = row % half // 32, every // 2 + 0 * row
    return ScalePlaces(
        _frozen(lanes), _frozen(columns), _frozen(sf_id + np.arange(scales)), _frozen(cta)
    )


BLOCK_BYTES = 512
"""Bytes of a block of 128 rows × 4 scales in memory, which one tcgen05.cp.32x128b.warpx4 moves."""
