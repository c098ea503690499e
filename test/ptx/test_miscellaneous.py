"""cos, ldu, membar, brkpt, pmevent, setmaxnreg: instructions no other test has a program with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import PtxSyntaxError, run_ptx

from .conftest import HEADER, kernel


def test_cosine(lanes: Any, assemble: Any) -> None:
    """cos.approx.f32: at most 2^-20.5 off in [-pi, pi] (PTX ISA 9.7.3 "cos")."""
    x = np.linspace(-np.pi, np.pi, 64, dtype=np.float32)
    got = lanes("cos.approx.f32 %d, %a;", [x], ["f32"], "f32").view(np.float32)
    assert np.abs(got - np.cos(x.astype(np.float64))).max() <= 2**-20.5
    assemble(HEADER + kernel("k", "cos.approx.f32 %d, %a;", ["f32"], "f32"))


HARMLESS = [
    "ld.param.u64 %u0, [k_0]; ldu.global.u32 %d, [%u0+4]; sub.u32 %d, %d, 1; add.u32 %d, %d, %a;",
    "membar.gl; membar.cta; membar.sys; membar.proxy.alias; mov.u32 %d, %a;",
    "pmevent 3; pmevent.mask 7; mov.u32 %d, %a;",
    "setp.eq.u32 %p0, %a, 99; @%p0 brkpt; mov.u32 %d, %a;",
    "setmaxnreg.inc.sync.aligned.u32 40; setmaxnreg.dec.sync.aligned.u32 24; mov.u32 %d, %a;",
]


@pytest.mark.parametrize("body", HARMLESS)
def test_without_an_effect_on_values(body: str, assemble: Any) -> None:
    words, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    report = run_ptx(ptx, grid=1, block=32, args=[words, out])
    assert report.ok and (out == words).all(), report
    assemble(ptx.replace("\n{\n.reg", "\n.maxntid 128\n{\n.reg"))


@pytest.mark.parametrize(
    "body", ["setmaxnreg.inc.sync.aligned.u32 41;", "setmaxnreg.inc.sync.aligned.u32 264;",
             "membar.all;", "cos.approx.u32 %d, %a;"],
)  # fmt: skip
def test_forms_that_do_not_exist(body: str, assemble: Any) -> None:
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    try:
        report = run_ptx(ptx, grid=1, block=32, args=[np.zeros(32, "u4")] * 2)
    except PtxSyntaxError as error:
        assert error.line > 5
    else:
        assert report.incomplete[0].line > 5
    with pytest.raises(AssertionError, match="error"):
        assemble(ptx.replace("\n{\n.reg", "\n.maxntid 128\n{\n.reg"))


def test_setmaxnreg_needs_the_whole_warp() -> None:
    body = "setp.eq.u32 %p0, %t0, 3; @%p0 setmaxnreg.inc.sync.aligned.u32 40; mov.u32 %d, %a;"
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    report = run_ptx(ptx, grid=1, block=32, args=[np.zeros(32, "u4")] * 2)
    assert [e.code for e in report.errors] == ["not-converged"]
