"""Bytes, shares and occupancy of the GEMV kernels of real size, as `bench/gemv.py` prints them.

The machine counts the bytes requested and runs the grid. Shares and bytes in flight follow from
the compiled program by a formula, and the plan without overlap is formulas throughout.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
KIB = 1024


@pytest.fixture(scope="module")
def bench() -> Any:
    """The module ``bench/gemv.py``."""
    path = Path(__file__).parents[2] / "bench/gemv.py"
    spec = importlib.util.spec_from_file_location("bench_gemv", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shares_and_bytes_in_flight(bench: Any, shape: tuple[int, int, int]) -> None:
    compiled = bench.Compiled(*shape)
    ranges = compiled.ranges
    assert len(ranges.shares(148)) >= 140
    assert ranges.balance(148) <= 1.05
    m, k, batch = shape
    of_a = m * batch * (k // 2 + k // 16)  # B and its scales are more
    assert compiled.stages_in_flight * (of_a // ranges.total) >= 64 * KIB


def row(plan: Any, unique: int) -> list[str]:
    """A plan as docs/explanation/gemv.md writes it."""
    return [
        plan.name,
        f"{plan.requested / unique:.4f}",
        f"{plan.partials} B" if plan.partials else "none",
        f"{plan.ctas} on {plan.busy}",
        f"{plan.in_flight / KIB:.1f}",
        f"{plan.balance:.3f}",
        f"{plan.seconds() * 1e6:.1f}",
    ]


def page_rows(shape: tuple[int, int, int]) -> list[list[str]]:
    """The shape's two rows of docs/explanation/gemv.md, the first cell left out."""
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "gemv.md").read_text().splitlines()
    first = next(n for n, line in enumerate(text) if line.startswith(f"| {shape} |"))
    return [[c.strip() for c in line.split("|")[2:-1]] for line in text[first : first + 2]]


def test_the_page(bench: Any) -> None:
    """The rows of docs/explanation/gemv.md that need no run: the plan without overlap."""
    for shape in SHAPES:
        plan = bench.without_overlap(*shape)
        assert row(plan, bench.unique_bytes(*shape)) == page_rows(shape)[1]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_plan(bench: Any, shape: tuple[int, int, int]) -> None:
    m, k, batch = shape
    unique = bench.unique_bytes(*shape)
    assert unique == m * batch * k * 9 // 16 + batch * k * 9 // 16
    plan = bench.Compiled(*shape).counted()
    assert row(plan, unique) == page_rows(shape)[0]
    assert row(bench.without_overlap(*shape), unique) == page_rows(shape)[1]
    assert unique <= plan.requested <= 1.015 * unique
    assert plan.busy >= 140
    assert plan.balance <= 1.05
    assert plan.in_flight >= 64 * KIB
    worse = bench.without_overlap(*shape)
    assert worse.requested > plan.requested
    assert worse.in_flight < plan.in_flight


def test_two_tiles_counted(bench: Any) -> None:
    """A and its scales once, B and its scales once a tile of 128 rows.

    Of a block of 512 bytes (128 rows times 4 scales) one row of 16 bytes holds the scales of B.
    """
    plan = bench.Compiled(256, 1024, 1).counted()
    elements, scales = 1024 // 2, 1024 // 16
    assert plan.requested == (256 + 2) * elements + 256 * scales + 2 * (scales // 4) * 16
