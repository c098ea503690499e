"""The lanes and columns of tensor memory that each instruction accesses.

Tensor memory has 128 lanes and 512 columns of 32 bits; an address has the lane in bits 31..16 and
the column in bits 15..0. The maps of this module are relative to the instruction's base address;
they are small, cached and read-only.

Sources: PTX ISA 9.7.16.1 (addressing), 9.7.16.8 (ld, st), 9.7.16.9 (cp, shift), 9.7.16.10.5 (data
paths of D); CUTLASS cute/atom/copy_traits_sm100.hpp, cute/atom/mma_traits_sm100.hpp (tmem_frg).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import TmemError

LANES = 128
COLUMNS = 512
QUARTER = 32
"""Lanes of a sub-partition; warp w can access only sub-partition w mod 4."""

Index = NDArray[np.int64]


def _frozen(array: NDArray[np.int64] | NDArray[np.bool_]) -> Index:
    array = np.ascontiguousarray(array, np.int64)
    array.flags.writeable = False
    return array


# tcgen05.ld and tcgen05.st -----------------------------------------------------------------------


@dataclass(frozen=True)
class AccessShape:
    """One `.SHAPE` of tcgen05.ld/st (PTX ISA 9.7.16.8.1, table of vector lengths)."""

    lanes: int
    columns_per_num: int
    registers_per_num: int
    largest_num: int


ACCESS_SHAPES: dict[str, AccessShape] = {
    "32x32b": AccessShape(32, 1, 1, 128),
    "16x64b": AccessShape(16, 2, 1, 128),
    "16x32bx2": AccessShape(16, 1, 1, 128),
    "16x128b": AccessShape(16, 4, 2, 64),
    "16x256b": AccessShape(16, 8, 4, 32),
}


@dataclass(frozen=True, eq=False)
class AccessMap:
    """Location of register r of thread t: `lanes[r, t]`, `columns[r, t]`, relative to the address
    of the instruction.

    `halves` is 2 for `.pack::16b` and `.unpack::16b`, otherwise 1. If it is 2, the low half of the
    register maps to the low half of `columns[r, t]`, and the high half to the low half of
    `columns[r, t] + 1`.
    """

    lanes: Index
    columns: Index
    halves: int

    @property
    def registers(self) -> int:
        """Number of 32-bit registers per thread."""
        return self.lanes.shape[0]


@cache
def access_map(
    shape: str, num: int, pack: bool = False, half_split: int | None = None
) -> AccessMap:
    """The map of one tcgen05.ld or tcgen05.st. Raises TmemError for an illegal combination.

    `half_split` is the immediate of `.16x32bx2`: the distance in columns between the windows of
    threads 0..15 and threads 16..31. No other shape has this immediate.
    """
    if shape not in ACCESS_SHAPES:
        raise TmemError(
            "tcgen05.ld/st shape", shape, "one of " + ", ".join(ACCESS_SHAPES), "PTX ISA 9.7.16.8"
        )
    s = ACCESS_SHAPES[shape]
    if num < 1 or num > s.largest_num or num & (num - 1):
        raise TmemError(
            f"num of .{shape}",
            num,
            f"a power of two in [1, {s.largest_num}]",
            "a thread holds at most 128 registers of one tcgen05.ld/st, PTX ISA 9.7.16.8.1",
        )
    if (half_split is None) == (shape == "16x32bx2"):
        raise TmemError(
            f"immHalfSplitoff of .{shape}",
            half_split,
            "an immediate" if shape == "16x32bx2" else "none",
            "only .16x32bx2 has two column windows",
        )
    r = np.arange(num * s.registers_per_num)[:, None]
    t = np.arange(32)[None, :]
    zero = np.zeros((len(r), 32), np.int64)
    if shape == "32x32b":
        lanes, columns = t, r
    elif shape == "16x64b":
        lanes, columns = (t >> 2) + 8 * (t & 1), ((t >> 1) & 1) + 2 * r
    elif shape == "16x128b":
        lanes, columns = (t >> 2) + 8 * (r & 1), (t & 3) + 4 * (r >> 1)
    elif shape == "16x256b":
        lanes, columns = (t >> 2) + 8 * ((r >> 1) & 1), 2 * (t & 3) + (r & 1) + 8 * (r >> 2)
    else:
        lanes, columns = t & 15, r
    if pack:
        columns = 2 * columns
    if half_split is not None:
        columns = columns + np.where(t >= 16, half_split, 0)
    return AccessMap(_frozen(lanes + zero), _frozen(columns + zero), 2 if pack else 1)


def access_base(taddr: int, shape: str, warp: int, rule: str = "own-or-local") -> tuple[int, int]:
    """The effective (lane, column) of a tcgen05.ld/st by warp `warp` of its CTA.

    A warp can access only its own sub-partition of 32 lanes. The `rule` decides how the lane field
    of the address is read. Under the default rule, the lane field may be a lane of that
    sub-partition, or a number below 32 that is relative to it; published kernels use each form.
    Under "own" it must be a lane of the sub-partition. Under "five-bits" its upper bits are
    ignored. Any other lane field raises TmemError, and so does a lane that is not a multiple of the
    shape's lanes.
    """
    if shape not in ACCESS_SHAPES:
        raise TmemError(
            "tcgen05.ld/st shape", shape, "one of " + ", ".join(ACCESS_SHAPES), "PTX ISA 9.7.16.8"
        )
    lane, column = taddr >> 16, taddr & 0xFFFF
    own = warp % 4 * QUARTER
    allowed = (warp % 4,) if rule == "own" else (0, warp % 4)
    if rule != "five-bits" and lane // QUARTER not in allowed:
        raise TmemError(
            f"lane of warp {warp}'s tensor-memory address",
            lane,
            f"{own}..{own + QUARTER - 1}" + (f", or below {QUARTER}" if rule != "own" else ""),
            "a warp reaches only the quarter of its index modulo 4, PTX ISA 9.7.16.8",
        )
    step = ACCESS_SHAPES[shape].lanes
    if lane % step:
        raise TmemError(
            f"lane of .{shape}",
            lane,
            f"a multiple of {step}",
            "the shape covers that many lanes of the quarter",
        )
    return own + lane % QUARTER, column


# tcgen05.mma -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DataPath:
    """Location of element (m, n) of D: the CTA of the pair, the lane, and the column. Each element
    has a 32-bit column of its own.

    `letter` is the name of the data path in PTX ISA 9.7.16.10.5. With `half_lanes`, D uses only 16
    lanes of each sub-partition, and the base lane may be 0 or 16; in all other paths the base lane
    is 0.
    """

    letter: str
    half_lanes: bool
    certain: bool
    """False for path C, whose formula is by analogy: no public source states it."""
    cta: Index
    lane: Index
    column: Index

    @property
    def columns(self) -> int:
        """Columns that D occupies."""
        return int(self.column.max()) + 1


def _letter(m: int, cta_group: int, ws: bool, sparse: bool) -> str:
    paths = {
        (256, 2, False): "A",
        (128, 2, False): "C" if sparse else "B",
        (128, 1, False): "D",
        (128, 1, True): "D",
        (64, 1, True): "E",
        (64, 1, False): "F",
        (32, 1, True): "G",
    }
    try:
        return paths[m, cta_group, ws]
    except KeyError:
        raise TmemError(
            "M",
            f"{m} with cta_group::{cta_group}{' .ws' if ws else ''}",
            "64 or 128 (cta_group::1), 128 or 256 (cta_group::2), 32, 64 or 128 (.ws)",
            "PTX ISA 9.7.16.10.5, data path layouts",
        ) from None


@cache
def d_layout(
    m: int, n: int, *, cta_group: int = 1, ws: bool = False, sparse: bool = False
) -> DataPath:
    """Data path of the m × n accumulator; with cta_group 2, m × n is the accumulator of the whole
    pair.
    """
    letter = _letter(m, cta_group, ws, sparse)
    split = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    if n < 1 or n % split:
        raise TmemError("N", n, f"a multiple of {split}", f"data path {letter} splits the columns")
    row, col = np.arange(m)[:, None], np.arange(n)[None, :]
    zero = np.zeros((m, n), np.int64)
    cta = row // (m // 2) if cta_group == 2 else zero
    own = row % (m // cta_group)
    part, column = col // (n // split), col % (n // split)
    if letter in "CF":
        lane = own % 16 + 32 * (own // 16)
    elif letter in "BE":
        lane = own + 64 * part
    elif letter == "G":
        lane = own + 32 * part
    else:
        lane = own
    return DataPath(
        letter,
        letter in "CF",
        letter != "C",
        _frozen(cta + zero),
        _frozen(lane + zero),
        _frozen(column + zero),
    )


@cache
def a_lanes(
    m: int, *, cta_group: int = 1, ws: bool = False, sparse: bool = False
) -> tuple[Index, Index]:
    """Location of the rows of A in tensor memory: (cta [m], lanes [copies, m]).

    A row of A is on every lane that has the same row of D. Therefore paths B and E need two copies
    of A, and path G needs four (CUTLASS: "duplicated"). Element k is at byte k · size of the lane's
    consecutive columns, little-endian; one instruction reads 32 bytes (8 columns).
    """
    letter = _letter(m, cta_group, ws, sparse)
    copies = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    path = d_layout(m, copies, cta_group=cta_group, ws=ws, sparse=sparse)
    return _frozen(path.cta[:, 0]), _frozen(path.lane.T)


A_COLUMNS = 8
"""Columns of A in tensor memory that one dense instruction reads and `.ashift` shifts."""


# tcgen05.cp and tcgen05.shift --------------------------------------------------------------------

MULTICASTS: dict[str, tuple[str | None, ...]] = {
    "128x256b": (None,),
    "128x128b": (None,),
    "4x256b": (None,),
    "64x128b": ("warpx2::02_13", "warpx2::01_23"),
    "32x128b": ("warpx4",),
}
"""Shape of tcgen05.cp -> its legal multicast qualifiers (PTX ISA 9.7.16.9)."""


@cache
def cp_lanes(shape: str, multicast: str | None = None) -> Index:
    """Destination lanes of each source row of tcgen05.cp, int64 [copies, rows].

    A 256-bit row fills 8 consecutive columns of its lanes, a 128-bit row 4 columns. The caller adds
    the lane field of the address; only 4x256b uses a lane field other than zero.
    """
    if shape not in MULTICASTS:
        raise TmemError(
            "tcgen05.cp shape", shape, "one of " + ", ".join(MULTICASTS), "PTX ISA 9.7.16.9"
        )
    if multicast not in MULTICASTS[shape]:
        raise TmemError(
            f"multicast of tcgen05.cp.{shape}",
            multicast,
            " or ".join(f".{q}" if q else "none" for q in MULTICASTS[shape]),
            "PTX ISA 9.7.16.9 fixes it by shape",
        )
    if shape == "4x256b":
        return _frozen(QUARTER * np.arange(4)[None, :])
    if shape == "32x128b":
        return _frozen(np.arange(32)[None, :] + QUARTER * np.arange(4)[:, None])
    if shape == "64x128b":
        i = np.arange(64)
        if multicast == "warpx2::02_13":
            return _frozen(np.stack([i, i + 64]))
        low = i % 32 + 64 * (i // 32)
        return _frozen(np.stack([low, low + 32]))
    return _frozen(np.arange(128)[None, :])


@cache
def shift_source(quarter: int | None = None) -> Index:
    """For each lane, the lane from which it receives its data in a shift by one row, int64 [128].

    Data moves to the next lower lane; the last lane of each sub-partition keeps its own data. If
    `quarter` is None, all four sub-partitions shift, as observed for `.ashift` on B200 (CUTLASS
    CuTeDSL example 1cta_mma_a_from_tmem). If it is 0..3, only this sub-partition shifts, which is
    the other possible reading of the stand-alone tcgen05.shift.
    """
    lane = np.arange(LANES)
    moves = lane % QUARTER != QUARTER - 1
    if quarter is not None:
        moves &= lane // QUARTER == quarter
    return _frozen(lane + moves)
