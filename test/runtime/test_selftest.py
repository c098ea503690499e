"""The micro-kernels of ``tc-run --selftest``: they assemble, and tell the alternatives apart."""

from __future__ import annotations

from typing import Any

import pytest

from tcir.codegen import assemble
from tcir.machine import REGISTRY
from tcir.runtime import selftest
from tcir.runtime.micro_kernels import NOT_ASKED, micro_kernels
from tcir.tools.tc_run import main as tc_run

KERNELS = micro_kernels()


def test_every_assumption_has_a_kernel_or_a_reason() -> None:
    names = {entry.name for entry in REGISTRY}
    assert set(KERNELS) | set(NOT_ASKED) == names
    assert not set(KERNELS) & set(NOT_ASKED)


@pytest.mark.parametrize("name", KERNELS)
def test_assembles(name: str) -> None:
    assert len(assemble(KERNELS[name].ptx, target=selftest.TARGET).data) > 1000


@pytest.mark.parametrize("name", KERNELS)
def test_tells_the_alternatives_apart(name: str) -> None:
    try:
        outcomes = selftest.expected(name, KERNELS[name])
    except selftest.NotModelledError as error:
        pytest.skip(f"not modelled: {error}")
    assert len(set(outcomes.values())) == len(outcomes)
    for alternative, data in outcomes.items():
        assert selftest.judge(outcomes, data) == str(alternative)
    flipped = bytes([next(iter(outcomes.values()))[0] ^ 1]) + b"?"
    assert selftest.judge(outcomes, flipped).startswith("neither")


def test_without_a_b200_one_sentence(capsys: Any) -> None:
    if selftest._blackwell() is None:
        pytest.skip("there is a B200")
    assert tc_run(["--selftest"]) == 2
    printed = capsys.readouterr()
    assert len(printed.err.strip().splitlines()) == 1
    for entry in REGISTRY:
        assert f"{entry.name}: assumed {entry.default}; silicon: not asked" in printed.out
