"""Special registers that differ between launches; and a refusal that names its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER, kernel


@pytest.mark.parametrize("cluster,want", [(1, 0), (2, 1)])
def test_explicit_cluster(cluster: int, want: int, assemble: Any) -> None:
    body = "mov.pred %p0, %is_explicit_cluster; selp.u32 %d, 1, 0, %p0; add.u32 %d, %d, %a;"
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    words, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    report = run_ptx(ptx, grid=2, block=32, cluster=cluster, args=[words, out])
    assert report.ok and (out == words + want).all()
    assemble(ptx)


def test_what_has_no_value_or_rule() -> None:
    words = np.zeros(32, np.uint32)
    ptx = HEADER + kernel("k", "mov.u32 %d, %envreg3;", ["u32"], "u32")
    report = run_ptx(ptx, grid=1, block=32, args=[words, words])
    assert [e.code for e in report.errors] == ["special-register"]
    body = "cvt.rs.f16x2.f32 %d, %a, %a, %t1;"
    report = run_ptx(HEADER + kernel("k", body, ["f32"], "b32"), grid=1, block=32, args=[words] * 2)
    assert ".rs" in str(report.incomplete[0])
