"""Schedules of NVFP4 products in the model: counts are the machine's, rows those of the pages."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect.tc import BlockScaledMatmulOp, MatmulOp
from tcir.errors import PassError
from tcir.passes.emit.cost import PRICED, Cost, LaunchWork
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.gemm.schedules import GemmSchedules
from tcir.passes.gemm.split_k import SplitK
from tcir.passes.module.fuse_epilogue import FuseEpilogue
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passmanager.remarks import remarks_to
from tcir.program.inputs import make_inputs
from tcir.program.source import load_module, mlir_context
from tcir.time.constants import alternatives

from .linalg_text import Matmul

ROOT = Path(__file__).resolve().parents[2]
BENCH = runpy.run_path(str(ROOT / "bench" / "product_schedules.py"))
PAGES = [
    (ROOT / "docs" / "explanation" / name).read_text().splitlines()
    for name in ("gemm.md", "gemv.md")
]
SHAPES = [("GEMM", each) for each in BENCH["GEMM_SHAPES"]] + [
    ("GEMV", each) for each in BENCH["GEMV_SHAPES"]
]


def op_of(module: ir.Module) -> Any:
    kinds = MatmulOp | BlockScaledMatmulOp
    (op,) = (each for each in tensor_ops(module) if isinstance(each, kinds))
    return op


def works(text: str, parts: int = 1) -> dict[int, LaunchWork]:
    """What the model counts of each width."""
    with mlir_context() as context:
        module = load_module(text, context)
        for each in (FuseEpilogue(), RaiseToTc(), SplitK(splits=parts)):
            each.apply(module)
        return {each.work.n_tile: each.work for each in GemmSchedules(op_of(module)).candidates}


NVFP4 = BENCH["program"](128, 320, 1024)
DENSE = {
    "tails": Matmul(150, 72, 88),
    "MN-major": Matmul(40, 96, 72, a_layout="km", b_layout="kn", element="bf16"),
    "a batch of f8": Matmul(33, 48, 160, b_layout="nk", batch=2, element="f8E4M3FN"),
    "tf32": Matmul(130, 80, 40, b_layout="nk", element="f32"),
}
COUNTED = [
    pytest.param(NVFP4, 64, 1, id="NVFP4"),
    *(
        pytest.param(text, n_tile, parts, id=f"{name} {n_tile}")
        for name, text, n_tile, parts in [
            ("NVFP4", NVFP4, 160, 2),
            ("NVFP4", BENCH["program"](40, 288, 512), 96, 1),
            *((name, case.text(), 48, 1) for name, case in DENSE.items() if name != "MN-major"),
            ("MN-major", DENSE["MN-major"].text(), 32, 1),
        ]
    ),
]


@pytest.mark.parametrize(("text", "n_tile", "parts"), COUNTED)
def test_work_of_a_gemm_is_what_the_machine_counts(text: str, n_tile: int, parts: int) -> None:
    kernel = tcir.compile(text, "gemm", n_tile=n_tile, split_k=parts)
    inputs = make_inputs(kernel.signature.inputs, 3, "integers")
    (spec,) = kernel.signature.outputs
    out = np.empty(spec.shape, spec.dtype)
    counted = kernel(*inputs, out, numerics="fast").counters
    work = works(text, parts)[n_tile]
    assert work.ctas == int(np.prod(kernel.launches.launches[0].grid))
    assert work.mma == counted["mma"] and work.to_tmem == counted.get("shared_to_tmem", 0)
    assert work.activations + work.filters == counted["global_to_shared"]
    assert work.to_tensor == counted["shared_to_tensor"]
    assert work.tensor_cycles == counted["tensor_cycles"]
    reduced = 0 if parts == 1 else out.nbytes
    assert work.stored + reduced == counted["global_store"]
    assert counted.get("global_load", 0) == (0 if parts == 1 else 4 * parts * out.size)


def test_bytes_of_a_gemv_are_what_the_machine_counts() -> None:
    for shape in ((256, 2048, 1), (384, 4096, 2)):
        compiled = BENCH["GEMV"]["Compiled"](*shape)
        assert compiled.requested == compiled.counted().requested


@cache
def product(kind: str, shape: tuple[int, int, int]) -> Any:
    schedules = BENCH[f"{kind.lower()}_schedules"](*shape)
    names = "(M, N, K)" if kind == "GEMM" else "(M, K, L)"
    return BENCH["Product"](f"{kind} {names} = {shape}", schedules)


@pytest.mark.parametrize("shape", BENCH["GEMM_SHAPES"])
def test_gemm_is_built_as_chosen(shape: tuple[int, int, int]) -> None:
    """The grid is that of the width which the page marks; a remark has its time and the next."""
    said: list[str] = []
    with remarks_to(lambda location, text: said.append(text)):
        kernel = tcir.compile(BENCH["program"](*shape), "gemm", cache=False)
    (chosen,) = (each for each in product("GEMM", shape).schedules if each.default)
    n_tile = int(chosen.name.split()[1].rstrip(","))
    assert kernel.launch_config.grid == (1, -(-shape[1] // n_tile), 1)
    (remark,) = (text for text in said if text.startswith("chose n-tile"))
    assert remark.startswith(f"chose n-tile={n_tile}: {chosen.microseconds():.2f} us; next n-tile=")
    assert "modelled, not measured" in remark


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(Matmul(200, 304, 64).text(), id="dense"),
        pytest.param(BENCH["program"](200, 300, 512), id="NVFP4"),
        pytest.param(BENCH["program"](136, 48, 256), id="one tile"),
    ],
)
def test_options_and_limits_decide(text: str) -> None:
    """Each candidate compiles, what is named is taken, and nothing legal is faster."""
    times = {n: Cost.of(work).microseconds for n, work in works(text).items()}
    grids = {}
    for n_tile in range(16, 257, 16):
        try:
            grids[n_tile] = tcir.compile(text, "gemm", n_tile=n_tile).launch_config.grid
        except PassError:
            assert n_tile not in times
    assert set(times) <= set(grids)
    columns = int(text.partition("-> tensor<")[2].split("x")[1])
    assert all(grid[1] == -(-columns // n_tile) for n_tile, grid in grids.items())
    least = min(times, key=lambda n: (times[n], -n))
    assert tcir.compile(text, "gemm").launch_config.grid == grids[least]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "shape"),
    SHAPES,
)
def test_the_rows_of_the_pages(kind: str, shape: tuple[int, int, int]) -> None:
    found = product(kind, shape)
    page = PAGES[kind == "GEMV"]
    rows = list(BENCH["rows"](found, 3))
    start = page.index(rows[0])
    assert page[start : start + len(rows)] == rows
    ranked = found.ranked()
    for constants in alternatives("sm_100a"):
        least = min(each.microseconds(constants) for each in ranked)
        choice = found.ranked(constants)[0]
        assert choice.microseconds(constants) == least
        for name, answer in constants.choices.items():
            if name in PRICED and choice is not ranked[0]:
                assert f"{choice.name} under" in rows[0] and f"{name}={answer}" in rows[0]
    (chosen,) = (each for each in ranked if each.default)
    assert chosen is ranked[0]
