"""The tables of hardware limits against the values of the sources, and `Legal` itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir.dialect import limits
from tcir.dialect.limits import Legal


def test_legal_says_and_suggests() -> None:
    n = limits.MMA_KINDS["f16"].n[1]
    assert str(n) == "a multiple of 8 in [8, 256]"
    assert n.nearest(20) == "16 or 24"
    assert n.nearest(0) == "8"
    assert n.nearest(300) == "256"
    assert str(limits.TMEM_ALLOCATION) == "one of 32, 64, 128, 256, 512"
    assert limits.TMEM_ALLOCATION.nearest(576) == "512"
    assert limits.TMEM_ALLOCATION.nearest(96) == "64 or 128"
    assert str(limits.TMA_BOX) == "in [1, 256]"


@given(st.integers(-600, 600), st.integers(-40, 40), st.integers(1, 40), st.integers(1, 24))
def test_nearest_is_nearest(value: int, low: int, count: int, step: int) -> None:
    legal = Legal(range(low, low + count * step, step), "", "")
    values = [low + i * step for i in range(count)]
    if value in values:
        return
    below = [v for v in values if v < value][-1:]
    above = [v for v in values if v > value][:1]
    assert legal.nearest(value) == " or ".join(map(str, below + above))


@pytest.mark.parametrize(
    ("kind", "group", "legal", "illegal"),
    [
        ("f16", 1, [8, 24, 256], [0, 4, 20, 264]),
        ("f16", 2, [16, 48, 256], [8, 24, 272]),
        ("i8", 1, [8, 16, 24, 32, 48, 256], [40, 56, 264]),
        ("i8", 2, [32, 256], [16, 48]),
        ("mxf4nvf4", 1, [8, 256], [12]),
    ],
)
def test_n_by_kind(kind: str, group: int, legal: list[int], illegal: list[int]) -> None:
    table = limits.MMA_KINDS[kind].n[group]
    assert all(n in table for n in legal)
    assert not any(n in table for n in illegal)


def test_m_by_kind() -> None:
    assert 64 in limits.MMA_KINDS["f16"].m[1]
    assert 256 not in limits.MMA_KINDS["f16"].m[1]
    assert 256 in limits.MMA_KINDS["f16"].m[2]
    assert 64 not in limits.MMA_KINDS["mxf4"].m[1]


def test_ld_never_passes_128_registers() -> None:
    for shape, num in limits.TMEM_LD_NUM.items():
        registers = [n * limits.TMEM_LD_REGISTERS[shape] for n in num.values]
        assert max(registers) == 128, shape


def test_figures() -> None:
    assert limits.SMEM_BYTES == 232448
    assert 2**40 not in limits.TMA_STRIDE and 2**40 - 16 in limits.TMA_STRIDE
    assert 2**32 in limits.TMA_DIM and 0 not in limits.TMA_DIM
    assert 1024 in limits.TMA_PIXELS and 1025 not in limits.TMA_PIXELS
    assert -128 in limits.TMA_CORNER[4] and 128 not in limits.TMA_CORNER[4]
    assert 2**20 - 1 in limits.MBARRIER_ARRIVALS and 2**20 not in limits.MBARRIER_ARRIVALS
