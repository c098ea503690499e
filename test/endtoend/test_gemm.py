"""Pipeline gemm: types, layouts, tails and tiles at every level, to the bit.

`make test` runs the cases of `QUICK` under two completion orders, `make test-all` all of them.
"""

from __future__ import annotations

import pytest

import tcir
from tcir.program.inputs import make_inputs, poison

from .gemm_cases import DENSE, MAJORS, QUICK, Dense


def check(text: str, pipeline: str, orders: int = 2) -> tcir.Kernel:
    """Compiles with every level executed on integers: equal, and nothing found."""
    kernel = tcir.compile(text, pipeline, validate=True, orders=orders, seed=3)
    report = kernel.report
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert {"tensor", "tile", "thread", "ptx"} <= {line.level for line in report.passes}
    assert not [finding for line in report.passes for finding in line.findings]
    return kernel


def run(case: Dense, orders: int) -> None:
    """Every level, and the PTX beside numpy."""
    kernel = check(case.text, case.pipeline)
    a, b = make_inputs(kernel.signature.inputs, 7, "integers")
    want = case.product(a, b)
    for order in (None, *range(1, orders)):
        (out,) = (poison(spec) for spec in kernel.signature.outputs)
        outcome = kernel(a, b, out, order_seed=order)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (order, str(outcome))


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_quick(case: Dense, orders: int) -> None:
    run(case, orders)


@pytest.mark.slow
@pytest.mark.parametrize("case", DENSE, ids=str)
def test_every_level(case: Dense, orders: int) -> None:
    run(case, orders)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in MAJORS if c.element != "i8"], ids=str)
def test_floats_are_within_the_bound(case: Dense) -> None:
    report = tcir.validate(case.text, case.pipeline, inputs="random", orders=1, seed=4)
    assert report.ok, str(report)
