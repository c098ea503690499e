"""cp.reduce.async.bulk.tensor, gather and scatter of rows, and what assembles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.run import run_ptx

from .conftest import HEADER

KERNEL = """
.visible .entry {name}(.param .align 64 .b8 x[128], .param .align 64 .b8 y[128])
{{
 .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b16 %h<4>; .reg .b64 %rd<6>;
 .shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;
 mov.b64 %rd1, x; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, y; cvta.param.u64 %rd2, %rd2;
 mov.u32 %r2, tile; mov.u32 %r3, bar; mov.b32 %r4, 0; mov.b32 %r5, 5; mov.b32 %r6, 2;
 mov.b32 %r7, 7; mov.b32 %r8, 1; mov.b16 %h0, 0;
 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;
 {load}
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0; @!%p1 bra W;
 {store}
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
 ret;
}}
"""
HEAD = "cp.async.bulk.tensor.2d.shared::cta.global"
LOAD = HEAD + ".tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r4, %r4}], [%r3];"
ROWS = "{%r4, %r5, %r6, %r7, %r8}"
GATHER = HEAD + f".tile::gather4.mbarrier::complete_tx::bytes [%r2], [%rd1, {ROWS}], [%r3];"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r4, %r4}], [%r2];"
SCATTER = (
    f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd2, {ROWS}], [%r2];"
)
PREFETCH = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r4, %r4}];"


def reduce(op: str) -> str:
    head = "cp.reduce.async.bulk.tensor.2d.global.shared::cta"
    return f"{head}.{op}.tile.bulk_group [%rd2, {{%r4, %r4}}], [%r2];"


def tiles(array: np.ndarray, dtype: str, rows: int = 4) -> TensorMap:
    columns = array.shape[1]
    return TensorMap.tiled(
        array,
        dtype=dtype,
        dims=[columns, array.shape[0]],
        strides_bytes=[columns * array.itemsize],
        box=[columns, rows],
    )


def run(load: str, store: str, x: Any, y: Any, dtype: str, rows: tuple[int, int]) -> Any:
    ptx = HEADER + KERNEL.format(name="k", load=load, store=store)
    maps = [tiles(x, dtype, rows[0]), tiles(y, dtype, rows[1])]
    return run_ptx(ptx, grid=1, block=1, args=maps)


OPERATIONS = [("add", np.add), ("min", np.minimum), ("max", np.maximum), ("and", np.bitwise_and),
              ("or", np.bitwise_or), ("xor", np.bitwise_xor)]  # fmt: skip


@pytest.mark.parametrize("op,oracle", OPERATIONS, ids=[o for o, _ in OPERATIONS])
def test_reduction(op: str, oracle: Any) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 1 << 20, (8, 16)).astype(np.uint32) for _ in range(2))
    want = y.copy()
    want[:4] = oracle(y[:4], x[:4])
    report = run(LOAD, reduce(op), x, y, "u32", (4, 4))
    assert report.ok and not report.findings, report
    assert (y == want).all()


def test_gather_and_scatter_of_rows() -> None:
    x, y = np.arange(128, dtype=np.uint32).reshape(8, 16), np.zeros((8, 16), np.uint32)
    report = run(GATHER, STORE, x, y, "u32", (1, 4))
    assert report.ok, report
    assert (y[:4] == x[[5, 2, 7, 1]]).all() and not y[4:].any()
    y[:] = 0
    report = run(LOAD, SCATTER, x, y, "u32", (4, 1))
    assert report.ok, report
    assert (y[[5, 2, 7, 1]] == x[:4]).all() and not y[[0, 3, 4, 6]].any()


def test_prefetch_has_no_effect() -> None:
    x, y = np.ones((8, 16), np.uint32), np.zeros((8, 16), np.uint32)
    report = run(PREFETCH + LOAD, STORE, x, y, "u32", (4, 4))
    assert report.ok, report
    assert y.sum() == 64


def test_legal_ptx(assemble: Any) -> None:
    pairs = [(LOAD, reduce(op)) for op, _ in OPERATIONS]
    pairs += [(GATHER, STORE), (LOAD, SCATTER), (PREFETCH + LOAD, STORE)]
    wide = HEAD.replace("2d", "4d") + (
        ".im2col::w.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r4, %r4, %r4, %r4}], [%r3], "
        "{%h0, %h0};"
    )
    pairs += [(wide, STORE), (wide.replace("im2col::w", "im2col::w::128"), STORE)]
    texts = (KERNEL.format(name=f"k{n}", load=a, store=b) for n, (a, b) in enumerate(pairs))
    assemble(HEADER + "".join(texts))
