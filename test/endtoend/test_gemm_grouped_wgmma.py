"""Grouped GEMM for sm_90a: a persistent kernel of wgmma; every level equal, breaks seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.program.inputs import make_inputs, poison

from .breaking import pick
from .test_gemm_grouped import CASES, CONTIGUOUS, MASKED, OF_GROUP, QUICK, TURNS, Grouped, plus
from .test_matmul_warp_breaks import Break

TARGET = "sm_90a"


@pytest.mark.parametrize("case", [QUICK, *CASES], ids=str)
def test_case(case: Grouped, orders: int) -> None:
    """Every level on random sizes, and the PTX beside numpy on `sizes`."""
    kernel = tcir.compile(
        case.text, case.pipeline, target=TARGET, validate=True, orders=min(orders, 4), seed=3
    )
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]
    assert "wgmma" in kernel.ptx
    a, b, drawn = make_inputs(kernel.signature.inputs, 7, "integers")
    for sizes in (drawn, np.array(case.sizes, np.int32)):
        (out,) = (poison(spec) for spec in kernel.signature.outputs)
        want = case.product(a, b, sizes, out)
        outcome = kernel(a, b, sizes, out)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (sizes, str(outcome))


def single(text: str) -> str:
    """A gated epilogue as one of every sum."""
    return (
        text.replace("(%gate: f32, %value: f32)", "(%value: f32)")
        .replace("maximumf %gate", "maximumf %value")
        .replace("3x48x72x", "3x24x72x")
        .replace("200x48xf32", "200x24xf32")
        .replace("3x40x48xf32", "3x40x24xf32")
    )


@pytest.mark.parametrize(
    "text",
    [CONTIGUOUS, single(OF_GROUP), single(MASKED)],
    ids=["rows of all groups", "of a group", "masked"],
)
def test_epilogue(text: str) -> None:
    report = tcir.validate(text, "gemm", target=TARGET, orders=2, seed=3)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


def test_a_gated_epilogue_is_rejected() -> None:
    with pytest.raises(tcir.PassError, match="for sm_90a, got one for two columns, as of a gated"):
        tcir.compile(MASKED, "gemm", target=TARGET)


def test_as_many_ctas_as_sms_at_most() -> None:
    text = Grouped(64, 4096, 512, 64).text
    kernel = tcir.compile(text, "gemm", target=TARGET, n_tile=64)
    assert kernel.launches.launches[0].grid == (132, 1, 1)


BREAKS = {
    "a row of the next group written": Break("tc.store_fragment_group", plus(2, 1)),
    "the last row of a group left out": Break("tc.store_fragment_group", plus(2, -1)),
    "rows one further down": Break("tc.store_fragment_group", plus(3, 1)),
    **TURNS,
}


@pytest.mark.parametrize("what", BREAKS)
def test_break(what: str) -> None:
    pipeline = tcir.named_pipeline("gemm").insert(BREAKS[what], after="tile-gemm")
    report = tcir.validate(QUICK.text, pipeline, target=TARGET, orders=1, seed=3)
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)


def test_weights_of_another_group() -> None:
    def change(module: Any) -> None:
        plus(3, 1)(pick(module, "tc.tma_load", 1))

    kernel = Break("builtin.module", change)
    pipeline = tcir.named_pipeline("gemm").insert(kernel, after="tile-gemm")
    report = tcir.validate(QUICK.text, pipeline, target=TARGET, orders=1, seed=3)
    assert report.first_failure() is not None, str(report)
