"""Schedules of NVFP4 products in the model: counts are the machine's, rows those of the pages."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir

ROOT = Path(__file__).resolve().parents[2]
BENCH = runpy.run_path(str(ROOT / "bench" / "product_schedules.py"))
PAGES = [(ROOT / "docs" / name).read_text().splitlines() for name in ("gemm.md", "gemv.md")]
SHAPES = [("GEMM", each) for each in BENCH["GEMM_SHAPES"]] + [
    ("GEMV", each) for each in BENCH["GEMV_SHAPES"]
]


@pytest.mark.parametrize(
    ("n_tile", "parts"), [(64, 1), pytest.param(192, 2, marks=pytest.mark.slow)]
)
def test_work_of_a_gemm_is_what_the_machine_counts(n_tile: int, parts: int) -> None:
    m, n, k = 128, 320, 1024
    kernel = tcir.compile(BENCH["program"](m, n, k), "gemm", n_tile=n_tile, split_k=parts)
    rng = np.random.default_rng(3)
    inputs = []
    for spec in kernel.signature.inputs:
        low, high = (0, 16) if spec.dtype.name == "float4_e2m1fn" else (0x30, 0x40)
        codes = rng.integers(low, high, spec.shape).astype(np.uint8)
        inputs.append(codes.view(spec.dtype))
    counted = kernel(*inputs, np.empty((m, n), np.float16), numerics="fast").counters
    work = BENCH["gemm_work"](m, n, k, n_tile, parts)
    assert work.ctas == int(np.prod(kernel.launches.launches[0].grid))
    assert work.mma == counted["mma"] and work.to_tmem == counted["shared_to_tmem"]
    assert work.activations + work.filters == counted["global_to_shared"]
    assert work.to_tensor == counted["shared_to_tensor"]
    assert work.tensor_cycles == counted["tensor_cycles"]
    reduced = 0 if parts == 1 else 2 * m * n
    assert work.stored + reduced == counted["global_store"]
    assert counted["global_load"] == (0 if parts == 1 else 4 * parts * m * n)


def test_bytes_of_a_gemv_are_what_the_machine_counts() -> None:
    for shape in ((256, 2048, 1), (384, 4096, 2)):
        compiled = BENCH["GEMV"]["Compiled"](*shape)
        assert compiled.requested == compiled.counted().requested


@cache
def product(kind: str, shape: tuple[int, int, int]) -> Any:
    schedules = BENCH[f"{kind.lower()}_schedules"](*shape)
    names = "(M, N, K)" if kind == "GEMM" else "(M, K, L)"
    return BENCH["Product"](f"{kind} {names} = {shape}", schedules)


def test_the_least_is_never_slower_than_another() -> None:
    small = product("GEMM", (128, 320, 512))
    ranked, legal = small.ranked(), [each for each in small.schedules if not each.reason]
    assert len(legal) == 16 and set(ranked) == set(legal)
    assert ranked[0].microseconds() == min(each.microseconds() for each in legal)
    assert sum(each.default for each in legal) == 1
    refused = [each for each in small.schedules if each.reason]
    assert refused and all("n-tile" in each.reason for each in refused)
    assert all("not legal: n-tile" in line for line in BENCH["illegal"](small))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "shape"), SHAPES)
def test_the_rows_of_the_pages(kind: str, shape: tuple[int, int, int]) -> None:
    found = product(kind, shape)
    page = PAGES[kind == "GEMV"]
    rows = list(BENCH["rows"](found, 3))
    start = page.index(rows[0])
    assert page[start : start + len(rows)] == rows
    ranked = found.ranked()
    for answer, each in found.choices().items():
        (constants,) = (
            c
            for c in BENCH["alternatives"]("sm_100a")
            if [f"{name}={choice}" for name, choice in c.choices.items()] == [answer.split()[0]]
        )
        assert each.microseconds(constants) <= min(s.microseconds(constants) for s in ranked)
    default = next(each for each in ranked if each.default)
    if kind == "GEMV":
        assert default.microseconds() <= 1.01 * ranked[0].microseconds()
