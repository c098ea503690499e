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

from . import cases

RECORD: dict[str, Any] = json.loads((cases.HERE / "silicon.json").read_text())
CASES = {case.name: case for case in cases.all_cases()}
FAULTS = {case.name: case for case in cases.faults()}


KNOWN: dict[str, str] = {}
"""Cases in which the machine still differs from silicon, and why. None may be added quietly."""


@cache
def cubin(source: str) -> bytes:
    """The assembled source."""
    return assemble(cases.ptx_of(source), target="sm_90a").data


def machine_bytes(case: cases.Case) -> bytes:
    """What the machine writes."""
    report, data = cases.run_on_machine(case)
    assert report.ok, str(report)
    return data


@pytest.mark.parametrize("source", cases.SOURCES)
def test_assembles(source: str) -> None:
    assert len(cubin(source)) > 1000


@pytest.mark.parametrize(
    "name",
    CASES,
)
def test_machine_gives_the_bytes_of_silicon(name: str) -> None:
    same = cases.digest(machine_bytes(CASES[name])) == RECORD["digests"][name]
    if name in KNOWN and not same:
        pytest.xfail(KNOWN[name])
    assert same


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
    assert not report.incomplete, str(report)
    assert report.errors, "the machine accepts it"


def test_a_store_ends_at_sixteen_bytes() -> None:
    """Rows of 61 bytes, 64 apart: a store also writes bytes 61..63, as silicon does."""
    case = CASES["store_u8"]
    before, (tensor_map, *_, buffer) = cases.noise(11 * 64, 1), case.make()[0]
    _, after = cases.run_on_machine(case)
    assert tensor_map.fields.dims == (61, 11) and (tensor_map.array == before[: 11 * 64]).all()
    box = buffer[:256].reshape(4, 64)  # the box of CTA 0: rows 0..3
    assert after[:256] == box.tobytes()
    assert after[61:64] != before[61:64].tobytes()


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
def test_silicon(hopper: Any) -> None:
    """The bytes recorded are still those of this GPU (one test: a skip should be one line)."""
    found = {n: cases.digest(cases.run_on_gpu(c, cubin(c.source))) for n, c in CASES.items()}
    different = [name for name in CASES if found[name] != RECORD["digests"][name]]
    assert not different
