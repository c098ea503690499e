"""Tensor-memory maps: each stated as a definition over its whole domain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tcir.machine.refusal import TmemError
from tcir.machine.tensor_core.time_table import mma_cycles, operand_bytes
from tcir.machine.tmem.places import (
    ACCESS_SHAPES,
    a_lanes,
    access_base,
    access_map,
    cp_lanes,
    d_layout,
    shift_source,
)


def powers(limit):
    return [1 << i for i in range(limit.bit_length())]


# --- tcgen05.ld / st

PLACE = {  # (thread, register) -> (lane, column)
    "32x32b": lambda t, r: (t, r),
    "16x64b": lambda t, r: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
    "16x128b": lambda t, r: (t // 4 + 8 * (r % 2), t % 4 + r // 2 * 4),
    "16x256b": lambda t, r: (t // 4 + 8 * (r // 2 % 2), t % 4 * 2 + r % 2 + r // 4 * 8),
}
WINDOW = {"32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8)}


@pytest.mark.parametrize("shape", PLACE)
def test_every_register_of_every_thread(shape):
    limit = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32}[shape]
    for num in powers(limit):
        got = access_map(shape, num)
        lanes, columns = WINDOW[shape]
        assert got.registers == lanes * columns * num // 32 and got.halves == 1
        for t, r in itertools.product(range(32), range(got.registers)):
            assert (got.lanes[r, t], got.columns[r, t]) == PLACE[shape](t, r)
        # Every word of the window exactly once.
        words = got.lanes * columns * num + got.columns
        np.testing.assert_array_equal(np.sort(words.ravel()), np.arange(lanes * columns * num))
        packed = access_map(shape, num, pack=True)
        assert packed.halves == 2
        np.testing.assert_array_equal(packed.lanes, got.lanes)
        np.testing.assert_array_equal(packed.columns, 2 * got.columns)


def test_two_windows_of_16x32bx2():
    for num, split in itertools.product(powers(128), (0, 1, 16, 128)):
        got = access_map("16x32bx2", num, half_split=split)
        for t, r in itertools.product(range(32), range(num)):
            assert got.lanes[r, t] == t % 16
            assert got.columns[r, t] == r + (split if t >= 16 else 0)
        packed = access_map("16x32bx2", num, pack=True, half_split=split)
        np.testing.assert_array_equal(packed.columns[:, :16], 2 * got.columns[:, :16])
        np.testing.assert_array_equal(packed.columns[:, 16:], packed.columns[:, :16] + split)


def test_16x256b_is_the_m16n8_accumulator_fragment():
    """mma.sync m16n8: c_i of a lane lies at row g + 8·(i // 2), column 2·c + i % 2."""
    got = access_map("16x256b", 1)
    for lane, i in itertools.product(range(32), range(4)):
        place = (lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2)
        assert (got.lanes[i, lane], got.columns[i, lane]) == place


@pytest.mark.parametrize(
    ("legal", "illegal", "message"),
    [
        (("32x32b", 128), ("32x32b", 256), "power of two in .1, 128., got 256"),
        (("32x32b", 16), ("32x32b", 12), "power of two"),
        (("32x32b", 1), ("32x32b", 0), "power of two"),
        (("16x128b", 64), ("16x128b", 128), "at most 128 registers"),
        (("16x256b", 32), ("16x256b", 64), "at most 128 registers"),
        (("16x64b", 1), ("16x32b", 1), "shape: expected one of"),
        (("16x32bx2", 1, False, 1), ("16x32bx2", 1), "immHalfSplitoff of .16x32bx2"),
        (("32x32b", 1), ("32x32b", 1, False, 1), "immHalfSplitoff of .32x32b: expected none"),
    ],
)
def test_illegal_accesses(legal, illegal, message):
    access_map(*legal)
    with pytest.raises(TmemError, match=message):
        access_map(*illegal)


def test_a_warp_reaches_its_own_quarter_only():
    for warp, lane, shape in itertools.product(range(8), range(0, 128, 8), ACCESS_SHAPES):
        quarter, step = warp % 4, 32 if shape == "32x32b" else 16
        legal = lane % step == 0 and lane // 32 in (0, quarter)
        if legal:
            assert access_base(lane << 16 | 77, shape, warp) == (32 * quarter + lane % 32, 77)
        else:
            with pytest.raises(TmemError, match=r"quarter|multiple of"):
                access_base(lane << 16 | 77, shape, warp)


# --- accumulator data paths

PATHS = {  # letter: (m, cta_group, ws, sparse), (m, n, N) -> (cta, lane, column)
    "A": ((256, 2, False, False), lambda m, n, N: (m // 128, m % 128, n)),
    "B": (
        (128, 2, False, False),
        lambda m, n, N: (m // 64, m % 64 + n // (N // 2) * 64, n % (N // 2)),
    ),
    "C": ((128, 2, False, True), lambda m, n, N: (m // 64, m % 16 + m % 64 // 16 * 32, n)),
    "D": ((128, 1, False, False), lambda m, n, N: (0, m, n)),
    "E": ((64, 1, True, False), lambda m, n, N: (0, m + n // (N // 2) * 64, n % (N // 2))),
    "F": ((64, 1, False, False), lambda m, n, N: (0, m % 16 + m // 16 * 32, n)),
    "G": ((32, 1, True, False), lambda m, n, N: (0, m + n // (N // 4) * 32, n % (N // 4))),
}


@pytest.mark.parametrize("letter", PATHS)
@pytest.mark.parametrize("columns", [64, 256])
def test_every_element_of_d(letter, columns):
    (rows, group, ws, sparse), place = PATHS[letter]
    got = d_layout(rows, columns, cta_group=group, ws=ws, sparse=sparse)
    assert got.letter == letter and got.half_lanes == (letter in "CF")
    assert got.certain == (letter != "C")
    for m, n in itertools.product(range(rows), range(columns)):
        assert (got.cta[m, n], got.lane[m, n], got.column[m, n]) == place(m, n, columns)
    words = (got.cta * 128 + got.lane) * 512 + got.column
    assert len(np.unique(words)) == rows * columns and got.lane.max() < 128
    split = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    assert got.columns == columns // split


def test_m128_ws_is_the_full_data_path():
    assert d_layout(128, 64, ws=True).letter == "D"


@pytest.mark.parametrize("m", [32, 64, 128, 256])
@pytest.mark.parametrize(("group", "ws"), [(1, False), (2, False), (1, True)])
def test_a_rows_lie_beside_their_d_rows(m, group, ws):
    legal = {(1, False): {64, 128}, (2, False): {128, 256}, (1, True): {32, 64, 128}}[group, ws]
    if m not in legal:
        for call in (
            lambda: d_layout(m, 64, cta_group=group, ws=ws),
            lambda: a_lanes(m, cta_group=group, ws=ws),
        ):
            with pytest.raises(TmemError, match="data path"):
                call()
        return
    cta, lanes = a_lanes(m, cta_group=group, ws=ws)
    d = d_layout(m, 64, cta_group=group, ws=ws)
    for row in range(m):
        assert set(lanes[:, row]) == set(d.lane[row]) and set(d.cta[row]) == {cta[row]}
    if (m, group) == (128, 2):  # both halves of each CTA hold its 64 rows
        np.testing.assert_array_equal(lanes, np.arange(128).reshape(2, 64)[:, np.arange(128) % 64])


def test_split_columns_must_divide():
    d_layout(32, 8, ws=True)
    with pytest.raises(TmemError, match="N: expected a multiple of 4, got 6"):
        d_layout(32, 6, ws=True)


# --- cp and shift


def test_cp_destinations():
    rows = np.arange(128)
    np.testing.assert_array_equal(cp_lanes("128x256b"), [rows])
    np.testing.assert_array_equal(cp_lanes("128x128b"), [rows])
    np.testing.assert_array_equal(cp_lanes("4x256b"), [[0, 32, 64, 96]])
    for i in range(32):
        assert set(cp_lanes("32x128b", "warpx4")[:, i]) == {i, i + 32, i + 64, i + 96}
    for i in range(64):
        assert set(cp_lanes("64x128b", "warpx2::02_13")[:, i]) == {i, i + 64}
        both = {i, i + 32} if i < 32 else {i + 32, i + 64}
        assert set(cp_lanes("64x128b", "warpx2::01_23")[:, i]) == both


@pytest.mark.parametrize(
    ("shape", "legal", "illegal"),
    [
        ("128x256b", None, "warpx4"),
        ("64x128b", "warpx2::02_13", None),
        ("32x128b", "warpx4", "warpx2::02_13"),
        ("4x256b", None, "warpx4"),
    ],
)
def test_multicast_is_fixed_by_the_shape(shape, legal, illegal):
    cp_lanes(shape, legal)
    with pytest.raises(TmemError, match="multicast of tcgen05"):
        cp_lanes(shape, illegal)


def test_unknown_cp_shape():
    with pytest.raises(TmemError, match=r"tcgen05\.cp shape"):
        cp_lanes("2x256b")


def test_shift_moves_each_quarter_by_one():
    source = shift_source()
    for lane in range(128):
        assert source[lane] == (lane if lane in (31, 63, 95, 127) else lane + 1)
    for quarter, lane in itertools.product(range(4), range(128)):
        moves = lane // 32 == quarter and lane % 32 != 31
        assert shift_source(quarter)[lane] == lane + moves


# --- time

MEASURED = {  # SemiAnalysisAI/microbench-blackwell, N = 64, 80, 96, 112, 128, 256
    (1, 64, False): (32, 40, 48, 56, 64, 128),
    (1, 64, True): (32, 40, 48, 56, 64, 128),
    (1, 128, False): (48, 52, 56, 60, 64, 128),
    (1, 128, True): (32, 40, 48, 56, 64, 128),
    (2, 128, False): (25, 27, 29, 30, 32, 64),
    (2, 128, True): (18, 20, 24, 28, 32, 64),
    (2, 256, False): (43, 46, 50, 56, 64, 128),
    (2, 256, True): (32, 40, 48, 56, 64, 128),
}


@pytest.mark.parametrize(("group", "m", "in_tmem"), MEASURED)
def test_cycles_fit_the_measured_table(group, m, in_tmem):
    for n, measured in zip((64, 80, 96, 112, 128, 256), MEASURED[group, m, in_tmem]):
        got = mma_cycles(m, n, a_in_tmem=in_tmem, cta_group=group)
        assert got == measured if group == 1 else measured - 4 <= got <= measured


def test_operand_bytes_and_unmeasured_forms():
    assert operand_bytes(128, 64, a_in_tmem=False) == 6144
    assert operand_bytes(128, 64, a_in_tmem=True) == 2048
    assert operand_bytes(256, 64, a_in_tmem=False, cta_group=2) == 5120
    with pytest.raises(TmemError, match="no public measurement"):
        mma_cycles(32, 64, a_in_tmem=False)
