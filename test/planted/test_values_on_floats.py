"""Random inputs: the mean square shows what the worst case of each element would let pass."""

from __future__ import annotations

import pytest

from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line
from tcir.validation.validator import Settings, Validator

from .planted import PTX, Planted
from .programs import PROGRAMS, program
from .values_ptx import ON_FLOATS

WITH_A_BOUND = [name for name in PROGRAMS if "i8" not in name and "codes" not in name]


def _run(name: str, ptx: str, seed: int) -> Line:
    validator = Validator(Settings(seed=seed, inputs="random"))
    with mlir_context() as context:
        validator.start(load_module(program(name).text, context))
    return validator.check_ptx(ptx, program(name).kernel.launches, Line(0, PTX))


@pytest.mark.parametrize("name", WITH_A_BOUND)
def test_whole(name: str) -> None:
    for seed in (1, 2, 3):
        line = _run(name, program(name).kernel.ptx, seed)
        assert line.verdict in ("equal", "within bound"), str(line)


@pytest.mark.parametrize("bug", ON_FLOATS, ids=str)
def test_value_bug(bug: Planted) -> None:
    line = _run(bug.program, bug.edit(program(bug.program).kernel.ptx), 1)
    assert line.verdict == "different", str(line)
