"""Tensor-memory layouts as shape:stride layouts.

The codomain counts 32-bit words: ``column * 128 + lane`` (`LANE`, `COLUMN`), or bytes for operands
of less than 32 bits. Sources: PTX ISA 9.7.16.10.5 (data-path layouts), 9.7.16.8 (ld/st shapes),
CUTLASS ``mma_traits_sm100.hpp`` and ``copy_traits_sm100.hpp``.
"""

from __future__ import annotations

from .int_tuple import LayoutError
from .layout import Layout

LANES = 128
LANE = 1
COLUMN = LANES


def lane_column(word: int) -> tuple[int, int]:
    """Returns ``(lane, column)`` for a word index of this module's layouts."""
    return word % LANES, word // LANES


def accumulator(m: int, n: int, *, cta_group: int = 1, weight_stationary: bool = False) -> Layout:
    """``(row, column of D) -> word`` of one CTA's part of a dense accumulator.

    With ``cta_group=2`` the rows are those of one CTA of the pair (``m / 2``). Layouts that use
    half of the lanes (M = 64) start at lane 0; the other half of the lanes begins at word offset
    ``16``.
    """
    match (m, cta_group, weight_stationary):
        case (256, 2, False) | (128, 1, _):
            return Layout((128, n), (LANE, COLUMN))
        case (128, 2, False) | (64, 1, True):
            return Layout((64, (n // 2, 2)), (LANE, (COLUMN, 64)))
        case (64, 1, False):
            return Layout(((16, 4), n), ((LANE, 32), COLUMN))
        case (32, 1, True):
            return Layout((32, (n // 4, 4)), (LANE, (COLUMN, 32)))
    raise LayoutError(
        f"expected M 64 or 128 (cta_group::1), 32, 64 or 128 (.ws), 128 or 256 (cta_group::2), "
        f"got M={m} cta_group::{cta_group}{' .ws' if weight_stationary else ''}"
    )


def operand_a(k: int, element_bytes: int, m: int = 128, cta_group: int = 1) -> Layout:
    """``(row, k) -> byte``: one CTA's rows of A, packed along the columns of their lanes.

    A row of A is on the lanes that have the same row of D. For ``m = 128`` of a pair there is a
    third mode, because lanes 64 to 127 repeat the 64 rows. M = 64 starts at lane 0; the other half
    of the lanes begins at byte offset ``16 * 4``.
    """
    per_word = 4 // element_bytes
    if k % per_word:
        raise LayoutError(
            f"expected K a multiple of {per_word} elements of {element_bytes} bytes, got {k}"
        )
    columns, steps = (per_word, k // per_word), (element_bytes, 4 * COLUMN)
    match (m, cta_group):
        case (128, 1) | (256, 2):
            return Layout((LANES, columns), (4 * LANE, steps))
        case (128, 2):
            return Layout((64, columns, 2), (4 * LANE, steps, 4 * 64 * LANE))
        case (64, 1):
            return Layout(((16, 4), columns), ((4 * LANE, 4 * 32 * LANE), steps))
    raise LayoutError(
        f"expected M 64 or 128 (cta_group::1), 128 or 256 (cta_group::2), got M={m} "
        f"cta_group::{cta_group}"
    )


LD_ST_LIMIT = {"32x32b": 128, "16x64b": 128, "16x32bx2": 128, "16x128b": 64, "16x256b": 32}
"""Largest ``.xN`` per shape (PTX ISA table 49)."""


def ld_st(shape: str, num: int, half_split: int | None = None) -> Layout:
    """``(thread, register) -> word`` of ``tcgen05.ld``/``st``, relative to the address of the
    instruction.

    ``half_split`` is the immediate ``immHalfSplitoff`` of ``.16x32bx2``, in columns.
    """
    if shape not in LD_ST_LIMIT:
        raise LayoutError(f"expected one of {', '.join(LD_ST_LIMIT)}, got {shape}")
    if num < 1 or num & (num - 1) or num > LD_ST_LIMIT[shape]:
        raise LayoutError(f"expected .x1 to .x{LD_ST_LIMIT[shape]}, a power of two, got .x{num}")
    if half_split is not None and half_split < 0:
        raise LayoutError(f"expected a half_split of at least 0 columns, got {half_split}")
    if (half_split is not None) != (shape == "16x32bx2"):
        raise LayoutError(f"half_split exists only for 16x32bx2, got {half_split} for {shape}")
    match shape:
        case "32x32b":
            return Layout((32, num), (LANE, COLUMN))
        case "16x64b":
            return Layout(((2, 2, 8), num), ((8 * LANE, COLUMN, LANE), 2 * COLUMN))
        case "16x128b":
            return Layout(((4, 8), (2, num)), ((COLUMN, LANE), (8 * LANE, 4 * COLUMN)))
        case "16x256b":
            return Layout(
                ((4, 8), (2, 2, num)), ((2 * COLUMN, LANE), (COLUMN, 8 * LANE, 8 * COLUMN))
            )
    assert half_split is not None
    return Layout(((16, 2), num), ((LANE, half_split * COLUMN), COLUMN))
