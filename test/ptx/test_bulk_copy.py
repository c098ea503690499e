"""cp.async.bulk and cp.reduce.async.bulk of contiguous bytes, and the waits they need."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER

KERNEL = """
.visible .entry {name}(.param .u64 x, .param .u64 y, .param .u32 n)
{{
 .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b16 %h<2>; .reg .b64 %rd<6>;
 .shared .align 128 .b8 tile[1024]; .shared .align 128 .b8 other[1024]; .shared .align 8 .b64 bar;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r1, [n];
 mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r4, other; mov.b16 %h0, 0x0F0F;
 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
 {body}
 ret;
}}
"""
LOAD = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], %r1;"
    "cp.async.bulk.shared::{to}.global.mbarrier::complete_tx::bytes [%r2], [%rd1], %r1, [%r3];"
)
WAIT = "W{n}: mbarrier.try_wait.parity.shared.b64 %p1, [%r3], {n}; @!%p1 bra W{n};"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], %r1;"
DONE = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
THERE = LOAD.format(to="cta") + WAIT.format(n=0)


def run(body: str, n: int = 512, y: Any = None, x: Any = None, **more: Any) -> Any:
    x = np.arange(1024, dtype=np.uint8) if x is None else x
    y = np.zeros(1024, np.uint8) if y is None else y
    ptx = HEADER + KERNEL.format(name="k", body=body)
    report = run_ptx(ptx, grid=1, block=1, args=[x, y, np.uint32(n)], **more)
    return report, x, y


@pytest.mark.parametrize("to", ["cta", "cluster"])
@pytest.mark.parametrize("n", [16, 512, 1024])
@pytest.mark.parametrize("seed", [None, 1])
def test_there_and_back(to: str, n: int, seed: int | None) -> None:
    body = LOAD.format(to=to) + WAIT.format(n=0) + STORE + DONE
    report, x, y = run(body, n, order_seed=seed)
    assert report.ok and not report.findings, report
    assert (y[:n] == x[:n]).all() and not y[n:].any()


def test_shared_to_shared() -> None:
    again = (
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], %r1;"
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%r4], [%r2], %r1, [%r3];"
    )
    store = STORE.replace("[%r2]", "[%r4]")
    report, x, y = run(THERE + again + WAIT.format(n=1) + store + DONE)
    assert report.ok, report
    assert (y[:512] == x[:512]).all()


def test_byte_mask() -> None:
    store = STORE.replace("bulk_group", "bulk_group.cp_mask").replace("%r1;", "%r1, %h0;")
    report, x, y = run(THERE + store + DONE)
    assert report.ok, report
    wanted = np.tile([1, 1, 1, 1, 0, 0, 0, 0], 64)
    assert (y[:512] == x[:512] * wanted).all()


@pytest.mark.parametrize("mask", [0x0FFF, 0x0F00, 0x1FFF, 0])
def test_bytes_that_the_mask_leaves_out_need_not_exist(mask: int) -> None:
    """As at the end of CUB's scan, whose last 16 bytes reach beyond the array."""
    store = STORE.replace("bulk_group", "bulk_group.cp_mask").replace("%r1;", "%r1, %h0;")
    store = f"mov.b16 %h0, {mask}; add.u64 %rd2, %rd2, 16; {store}"
    report, x, y = run(THERE + store + DONE, n=16, y=np.zeros(28, np.uint8))
    if mask & 0xF000:
        assert [error.code for error in report.errors] == ["out-of-bounds"]
        return
    assert report.ok, report
    wanted = x[:12] * (mask >> np.arange(12) & 1)
    assert (y[16:] == wanted).all() and not y[:16].any()


REDUCTIONS = [
    ("add.u32", np.uint32, lambda a, b: a + b), ("add.f32", np.float32, lambda a, b: a + b),
    ("min.s32", np.int32, np.minimum), ("max.u64", np.uint64, np.maximum),
    ("and.b32", np.uint32, np.bitwise_and), ("xor.b64", np.uint64, np.bitwise_xor),
    ("min.f16", np.float16, np.minimum), ("max.bf16", ml_dtypes.bfloat16, np.maximum),
    ("add.noftz.f16", np.float16, lambda a, b: a + b),
]  # fmt: skip


def reduction(op: str) -> str:
    return f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%rd2], [%r2], %r1;"


@pytest.mark.parametrize("op,dtype,oracle", REDUCTIONS, ids=[r[0] for r in REDUCTIONS])
def test_reduction(op: str, dtype: Any, oracle: Any) -> None:
    rng = np.random.default_rng(5)
    low = 0 if np.dtype(dtype).kind == "u" else -99
    x, y = (rng.integers(low, 99, 64).astype(dtype) for _ in range(2))
    before = y.copy()
    n = x.nbytes // 2
    report, _, _ = run(THERE + reduction(op) + DONE, n, y, x)
    assert report.ok, report
    assert (y[:32] == oracle(before[:32], x[:32])).all() and (y[32:] == before[32:]).all()


def test_sizes_are_multiples_of_sixteen() -> None:
    report, _, _ = run(THERE, 24)
    assert [e.code for e in report.errors] == ["misaligned"]


READ_BACK = "ld.shared.b32 %r5, [%r2]; st.global.b32 [%rd2], %r5;"
OVERWRITE = "mov.b32 %r5, 7; st.shared.b32 [%r2], %r5;"


@pytest.mark.parametrize(
    "body,good",
    [
        (LOAD.format(to="cta") + READ_BACK + WAIT.format(n=0), False),
        (THERE + READ_BACK, True),
        (THERE + STORE + OVERWRITE + DONE, False),
        (THERE + STORE + "cp.async.bulk.commit_group;" + OVERWRITE + DONE, False),
        (THERE + STORE + DONE.replace("wait_group", "wait_group.read") + OVERWRITE, True),
        (OVERWRITE + STORE + DONE, False),
        (OVERWRITE + "fence.proxy.async.shared::cta;" + STORE + DONE, True),
    ],
)
def test_edges(body: str, good: bool) -> None:
    report, _, _ = run(body, 16 if "b32 %r5, 7" in body and THERE not in body else 512)
    codes = {f.code for f in report.findings if f.severity == "error"} - {"undefined-read"}
    assert (not codes) == good, report


def test_snippets_are_legal_ptx(assemble: Any) -> None:
    bodies = [LOAD.format(to=t) + STORE + DONE for t in ("cta", "cluster")]
    bodies += [reduction(op) for op, _, _ in REDUCTIONS]
    bodies += [STORE.replace("bulk_group", "bulk_group.cp_mask").replace("%r1;", "%r1, %h0;")]
    bodies += [
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%r4], [%r2], %r1, [%r3];"
    ]
    texts = (KERNEL.format(name=f"k{n}", body=b) for n, b in enumerate(bodies))
    assemble(HEADER + "".join(texts))


def test_a_bulk_copy_has_no_prefetch_size() -> None:
    """A plan had it; `ld` and `cp.async` do have one."""
    from tcir import codegen
    from tcir.errors import Error

    text = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 128 .b8 s[];
.visible .entry k(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %m;
	ld.param.u64 %a, [p];
	mov.u32 %m, s;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::128B [%m], [%a], 64, [%m];
	ret;
}
"""
    with pytest.raises(
        Error, match=r"Illegal modifier '.L2::128B' for instruction 'cp.async.bulk'"
    ):
        codegen.assemble(text)
    report = run_ptx(text, grid=1, block=32, args=[np.zeros(64)], dynamic_smem=1024)
    assert "no rule for modifier .L2::128B" in str(report)
