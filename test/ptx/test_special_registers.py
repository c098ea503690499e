"""Special registers that differ between launches; and a refusal that names its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import PtxSyntaxError, run_ptx

from .conftest import HEADER, kernel


@pytest.mark.parametrize("cluster,want", [(1, 0), (2, 1)])
def test_explicit_cluster(cluster: int, want: int, assemble: Any) -> None:
    body = "mov.pred %p0, %is_explicit_cluster; selp.u32 %d, 1, 0, %p0; add.u32 %d, %d, %a;"
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    words, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    report = run_ptx(ptx, grid=2, block=32, cluster=cluster, args=[words, out])
    assert report.ok and (out == words + want).all()
    assemble(ptx)


NO_VALUE = ["%envreg3", "%pm0", "%reserved_smem_offset_begin", "%reserved_smem_offset_0"]


@pytest.mark.parametrize("name", NO_VALUE)
def test_what_only_the_driver_knows_is_named(name: str, assemble: Any) -> None:
    words = np.zeros(32, np.uint32)
    ptx = HEADER + kernel("k", f"mov.b32 %d, {name};", ["u32"], "u32")
    report = run_ptx(ptx, grid=1, block=32, args=[words, words])
    assert name in str(report.incomplete[0]) and report.incomplete[0].line > 5
    assemble(ptx)


def test_values_that_follow_from_the_launch(assemble: Any) -> None:
    body = "mov.u32 %d, {}; add.u32 %d, %d, %a;"
    for name, want in (("%total_smem_size", 512), ("%aggr_smem_size", 512 + 1024)):
        words, out = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
        ptx = HEADER + kernel("k", body.format(name), ["u32"], "u32")
        report = run_ptx(ptx, grid=1, block=32, dynamic_smem=512, args=[words, out])
        assert report.ok and (out == want).all(), report
        assemble(ptx)
    ptx = HEADER + kernel(
        "k", "mov.u64 %d, %current_graph_exec; add.u64 %d, %d, %a;", ["u64"], "u64"
    )
    longs = np.arange(32, dtype=np.uint64)
    report = run_ptx(ptx, grid=1, block=32, args=[longs, out := np.zeros(32, np.uint64)])
    assert report.ok and (out == longs).all()
    assemble(ptx)


VECTORS = [
    ("%tid", lambda t, c: (t % 8, t // 8, 0)),
    ("%ntid", lambda t, c: (8, 4, 1)),
    ("%ctaid", lambda t, c: (c % 2, c // 2, 0)),
    ("%nctaid", lambda t, c: (2, 3, 1)),
]


@pytest.mark.parametrize("name,value", VECTORS, ids=[v[0] for v in VECTORS])
@pytest.mark.parametrize("kind", ["b32", "u16"])
def test_a_vector_of_a_special_register(name: str, value: Any, kind: str, assemble: Any) -> None:
    parts, widen = ("%t3, %t4, _, %t6", "") if kind == "b32" else ("%h0, %h1, _, %h3", "cvt")
    wide = "cvt.u32.u16 %t3, %h0; cvt.u32.u16 %t4, %h1; cvt.u32.u16 %t6, %h3;" if widen else ""
    body = (
        f"mov.v4.{kind} {{{parts}}}, {name}; {wide} mad.lo.u32 %d, %t4, 100, %t3;"
        "mad.lo.u32 %d, %t6, 10000, %d;"
    )
    head = (
        "mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mov.u32 %t2, %ntid.x;\n"
        "mad.lo.u32 %t0, %t1, %t2, %t0;"
    )
    text = kernel("k", body, ["u32"], "u32")
    flat = (
        "mov.u32 %t0, %tid.y; mov.u32 %t1, %tid.x; mad.lo.u32 %t0, %t0, 8, %t1;"
        "mov.u32 %t1, %ctaid.y; mov.u32 %t2, %ctaid.x; mad.lo.u32 %t1, %t1, 2, %t2;"
        "mad.lo.u32 %t0, %t1, 32, %t0;"
    )
    assert head in text
    ptx = HEADER + text.replace(head, flat)
    words, out = np.zeros(192, np.uint32), np.zeros(192, np.uint32)
    report = run_ptx(ptx, grid=(2, 3), block=(8, 4), args=[words, out])
    assert report.ok, report
    for n in range(192):
        x, y, _ = value(n % 32, n // 32)
        assert out[n] == 100 * y + x
    assemble(ptx)


@pytest.mark.parametrize("body", ["mov.u32 %d, %tid;", "mov.v2.u32 {%d, %t3}, %tid;"])
def test_a_special_vector_is_read_whole(body: str, assemble: Any) -> None:
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    with pytest.raises(PtxSyntaxError, match=r"%tid\.x|four elements"):
        run_ptx(ptx, grid=1, block=32, args=[np.zeros(32, "u4")] * 2)
    with pytest.raises(AssertionError, match="vector size"):
        assemble(ptx)


def test_vectors_of_registers(assemble: Any) -> None:
    """All are read before one is written."""
    body = "mov.b32 %t3, 7; mov.v2.b32 {%t3, %t4}, {%a, %t3}; mad.lo.u32 %d, %t4, 100, %t3;"
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    words, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    report = run_ptx(ptx, grid=1, block=32, args=[words, out])
    assert report.ok and (out == 700 + words).all(), report
    assemble(ptx)
