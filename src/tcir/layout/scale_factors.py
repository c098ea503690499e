"""Layouts of the scale factors of block-scaled mmas; a scale is one byte.

Global memory: blocks of 512 bytes for 128 rows x 4 scales (cuBLAS, "1D block scaling factors
layout"; CUTLASS ``sm100_blockscaled_layout.hpp``). Tensor memory: four copies, one per
sub-partition of 32 lanes (PTX ISA 9.7.16.10.7).
"""

from __future__ import annotations

from .int_tuple import LayoutError
from .layout import Layout
from .tmem import COLUMN, LANE

ROWS, SCALES, BLOCK_BYTES = 128, 4, 512


def block() -> Layout:
    """``(row, scale) -> byte`` of one block; in a block, rows whose numbers differ by 32 are
    adjacent.
    """
    return Layout(((32, 4), SCALES), ((16, 4), 1))


def memory(rows: int, scales: int) -> Layout:
    """``(row, scale) -> byte`` of a whole operand: blocks follow each other along the scales.

    ``scales`` is K / 16 or K / 32; rows and scales are padded to whole blocks by the caller.
    """
    if rows % ROWS or scales % SCALES or rows < 1 or scales < 1:
        bad = (rows // ROWS * ROWS, scales // SCALES * SCALES)
        raise LayoutError(
            f"expected rows a multiple of {ROWS} and scales of {SCALES} (pad them), got {rows} x "
            f"{scales}: the block at coordinate {bad} is not whole"
        )
    across = scales // SCALES
    return Layout(
        ((32, 4, rows // ROWS), (SCALES, across)),
        ((16, 4, across * BLOCK_BYTES), (1, BLOCK_BYTES)),
    )


def tensor_memory(rows: int) -> Layout:
    """``(row, scale, copy) -> byte`` (word * 4 + byte) of the scales of ``rows`` rows.

    Row ``r`` is in lane ``r % 32`` of column ``r / 32`` of each of the four sub-partitions, which
    contain the copies. The SF id in the instruction descriptor selects the byte of the column at
    which the instruction's scales begin.
    """
    if rows % 32 or rows < 1:
        raise LayoutError(
            f"expected rows a multiple of 32, got {rows}: column {rows // 32} is not whole"
        )
    return Layout(
        ((32, rows // 32), SCALES, 4),
        ((4 * LANE, 4 * COLUMN), 1, 4 * 32 * LANE),
    )
