"""Micro-kernels whose bytes must be the same on the simulated machine and on a Hopper GPU.

`silicon.json` holds digests of what an H200 wrote: so the machine is compared with silicon without
a GPU. Tests marked gpu run the kernels again, where there is one.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tcir.codegen import assemble
from tcir.errors import IncompleteError
from tcir.machine.refusal import Refusal

from . import cases

RECORD: dict[str, Any] = json.loads((cases.HERE / "silicon.json").read_text())
CASES = {case.name: case for case in cases.all_cases()}
FAULTS = {case.name: case for case in cases.faults()}


@cache
def cubin(source: str) -> bytes:
    """The assembled source."""
    return assemble(cases.ptx_of(source), target="sm_90a").data


def machine_bytes(case: cases.Case) -> bytes:
    """What the machine writes; skips the test, by name, where it has no rule."""
    report, data = cases.run_on_machine(case)
    if report.incomplete:
        pytest.skip(f"not modelled: {report.incomplete[0].instruction}")
    assert report.ok, str(report)
    return data


@pytest.mark.parametrize("source", cases.SOURCES)
def test_assembles(source: str) -> None:
    assert len(cubin(source)) > 1000


@pytest.mark.parametrize("name", CASES)
def test_machine_gives_the_bytes_of_silicon(name: str) -> None:
    assert cases.digest(machine_bytes(CASES[name])) == RECORD["digests"][name]


def test_every_case_was_recorded() -> None:
    assert set(RECORD["digests"]) == set(CASES)
    assert set(RECORD["faults"]) == set(FAULTS)


def test_a_single_bit_is_noticed() -> None:
    case = CASES["tile_swizzle_128B"]
    _, data = cases.run_on_machine(case)
    assert cases.digest(data) == RECORD["digests"][case.name]
    flipped = bytes([data[0], data[1] ^ 1]) + data[2:]
    assert cases.digest(flipped) != RECORD["digests"][case.name]


@pytest.mark.parametrize("name", FAULTS)
def test_machine_refuses_what_silicon_refuses(name: str) -> None:
    assert RECORD["faults"][name].startswith("CUDA_ERROR_")
    report, _ = cases.run_on_machine(FAULTS[name])
    if report.incomplete:
        pytest.skip(f"not modelled: {report.incomplete[0].instruction}")
    assert report.errors, "the machine accepts it"


# --- on hardware ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def hopper() -> Any:
    """The GPU, if it is one of compute capability 9.0."""
    from tcir.runtime import device

    try:
        found = device()
    except IncompleteError as error:
        pytest.skip(str(error))
    if found.capability != (9, 0):
        pytest.skip(f"expected a Hopper GPU (sm_90), got {found}")
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_silicon(hopper: Any, name: str) -> None:
    case = CASES[name]
    silicon = cases.run_on_gpu(case, cubin(case.source))
    assert cases.digest(silicon) == RECORD["digests"][name]
    try:
        assert silicon == machine_bytes(case)
    except Refusal as refusal:
        pytest.fail(f"the machine refuses it: {refusal}")
