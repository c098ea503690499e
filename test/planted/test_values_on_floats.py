"""Random inputs: the mean square shows what the worst case of each element would let pass."""

from __future__ import annotations

import pytest
from endtoend.chain_text import SMALL_PRODUCTS

from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from . import values_ranged
from .edits import results, where
from .planted import PTX, Planted, Program
from .programs import PROGRAMS, program
from .values_epilogues import HALF_TO_BF16
from .values_ptx import ON_FLOATS

RANGED = {bug.program for bug in values_ranged.BUGS}
WITH_A_BOUND = [
    name for name in PROGRAMS if "i8" not in name and "codes" not in name and name not in RANGED
]


def _run(name: str, ptx: str, seed: int) -> Line:
    with mlir_context() as context:
        validation = begin(
            load_module(program(name).text, context), Settings(seed=seed, inputs="random")
        )
    return validation.check_ptx(ptx, program(name).kernel.launches, Line(0, PTX))[0]


@pytest.mark.parametrize("name", WITH_A_BOUND)
def test_whole(name: str) -> None:
    for seed in (1, 2, 3):
        line = _run(name, program(name).kernel.ptx, seed)
        assert line.verdict in ("equal", "within bound"), str(line)


@pytest.mark.parametrize("bug", ON_FLOATS, ids=str)
def test_value_bug(bug: Planted) -> None:
    line = _run(bug.program, bug.edit(program(bug.program).kernel.ptx), 1)
    assert line.verdict == "different", str(line)


SMALL = Program("gemm", SMALL_PRODUCTS)


def _run_small(after: str, text: str, seed: int) -> Line:
    with mlir_context() as context:
        validation = begin(load_module(SMALL.text, context), Settings(seed=seed, inputs="random"))
        return validation.check(load_module(text, context), Line(0, after))


def test_a_product_of_rounded_sums() -> None:
    """A sum in 2000 that f16 rounds the other way is off by a whole unit."""
    for seed in (2, 7):
        line = _run_small("tile-gemm", SMALL.state("tile-gemm"), seed)
        assert line.verdict == "within bound" and line.max_error_over_bound < 0.1, str(line)


@pytest.mark.parametrize(
    ("what", "lines"),
    [("through bf16", HALF_TO_BF16), ("below 2^-3 is 0", where("olt", "0.125", "0.0"))],
)
def test_bugs_between_two_products(what: str, lines: tuple[str, ...]) -> None:
    edit = results(r'"tc.matmul".*-> tensor<128x16xf16>', *lines)
    line = _run_small("split-launches", edit(SMALL.state("split-launches")), 1)
    assert line.verdict == "different", what
