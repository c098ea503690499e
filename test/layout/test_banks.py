"""Bank conflicts: counted per phase, against a count of words by hand."""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir.layout import (
    SWIZZLES,
    Layout,
    LayoutError,
    Tensor,
    conflict_free_swizzle,
    conflicts,
    copy_atom,
    copy_conflicts,
    copy_phases,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_mma,
    phases,
    row_major,
)


def test_the_phases() -> None:
    assert [len(phases([0] * 32, width)) for width in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]
    quarter = phases([16 * i for i in range(32)], 16)
    assert [p.threads for p in quarter] == [tuple(range(8 * i, 8 * i + 8)) for i in range(4)]


@pytest.mark.parametrize(
    ("step", "width", "expected"),
    [
        (4, 4, 0), (0, 4, 0), (8, 4, 1), (128, 4, 31), (132, 4, 0), (2, 2, 0), (64, 2, 15),
        (8, 8, 0), (256, 8, 30), (16, 16, 0), (128, 16, 28), (32, 16, 4), (144, 16, 0),
    ],
)  # fmt: skip
def test_strided_accesses(step: int, width: int, expected: int) -> None:
    assert conflicts([step * i for i in range(32)], width) == expected


@given(st.lists(st.integers(0, 255), min_size=32, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_by_counting_words(units: list[int], width: int) -> None:
    total = 0
    at_once = 32 if width <= 4 else 128 // width
    for first in range(0, 32, at_once):
        banks = defaultdict(set)
        for u in units[first : first + at_once]:
            for byte in range(u * width, u * width + width):
                banks[byte // 4 % 32].add(byte // 4)
        total += max(len(words) for words in banks.values()) - 1
    assert conflicts([u * width for u in units], width) == total


def test_refusals() -> None:
    with pytest.raises(LayoutError, match="got 3"):
        phases([0], 3)
    with pytest.raises(LayoutError, match="got 8 of thread 1"):
        phases([0, 8], 16)


MMA = make_tiled_mma("mma.m16n8k16", (2, 2, 1))


@pytest.mark.parametrize(
    ("mode", "row_bytes", "expected"),
    # Rows of 64 bytes: rows 2 apart meet, so 4 rows a bank; of 128 bytes: all 8.
    [("NONE", 64, 3), ("64B", 64, 0), ("NONE", 128, 7), ("128B", 128, 0), ("32B", 128, 3),
     ("64B", 128, 1), ("NONE", 144, 0)],
)  # fmt: skip
def test_ldmatrix(mode: str, row_bytes: int, expected: int) -> None:
    k = min(row_bytes, 128) // 2
    tensor = Tensor(Layout((32, k), (row_bytes // 2, 1)), 0, 16, SWIZZLES[mode], 1024)
    load = make_tiled_copy_A(copy_atom("ldmatrix.x4", 16), MMA)
    found = copy_phases(load, tensor, "S")
    instructions = 4 * k // 16  # of each of the 4 warps: the tile is 32 x 16
    assert len(found) == 4 * instructions
    assert {phase.conflicts for phase in found} == {expected}
    assert copy_conflicts(load, tensor, "S") == expected * len(found)


def test_only_rows_that_are_read_count() -> None:
    tensor = Tensor(row_major((16, 64)), 0, 16)
    load = make_tiled_copy_B(copy_atom("ldmatrix.x2", 16), MMA)
    assert {len(p.threads) for p in copy_phases(load, tensor, "S")} == {8}
    assert len(copy_phases(load, tensor, "S")) == 4 * 2 * 4  # warps x matrices x k steps


def test_the_swizzle_is_chosen_by_counting() -> None:
    fill = make_tiled_copy(copy_atom("cp.async.16", 16), Layout((16, 8), (8, 1)), Layout((1, 8)))
    load = make_tiled_copy_A(copy_atom("ldmatrix.x4", 16), MMA)
    uses = [(fill, "D"), (load, "S")]
    assert conflict_free_swizzle(Tensor(row_major((32, 64)), 0, 16), uses) == "128B"
    narrow = make_tiled_copy(copy_atom("cp.async.16", 16), Layout((32, 4), (4, 1)), Layout((1, 8)))
    uses = [(narrow, "D"), (load, "S")]
    assert conflict_free_swizzle(Tensor(row_major((32, 32)), 0, 16), uses) == "64B"
    padded = Tensor(Layout((32, 64), (72, 1)), 0, 16)
    assert conflict_free_swizzle(padded, [(load, "S")]) == "NONE"
    m_major = Tensor(Layout((32, 64)), 0, 16)
    plain = make_tiled_copy(copy_atom("copy.b16", 16), Layout((1, 32)), Layout((2, 1)))
    with pytest.raises(LayoutError, match=r"no swizzle frees .*NONE leaves"):
        conflict_free_swizzle(m_major, [(plain, "S")])


def test_every_mode_against_every_row_length() -> None:
    """The mode named after the row length frees 16-byte columns of rows of that length."""
    for span, mode in itertools.product((32, 64, 128), ("32B", "64B", "128B")):
        swizzle = SWIZZLES[mode]
        rows = [[swizzle(span * r + 16 * c) for r in range(8)] for c in range(span // 16)]
        free = all(conflicts(addresses, 16) == 0 for addresses in rows)
        assert free == (int(mode[:-1]) >= span)
