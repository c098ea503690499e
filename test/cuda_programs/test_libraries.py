"""Host functions of CUDA's libraries (programs/libraries.cu)."""

from __future__ import annotations

import ctypes

import pytest

from tcir.cuda.libraries import curand
from tcir.cuda.libraries.functions import FUNCTIONS, LETTERS, strided
from tcir.errors import MissingDependencyError

from .test_program import PROGRAMS, run

SOBOL = "0 0.5 0.75 0.25 0.375 0.875 0.625 0.125", "0 0.5 0.25 0.75 0.375 0.875 0.125 0.625"
"""The first points of Sobol's sequence in two dimensions, in the order of the Gray code (Joe and
Kuo, "Constructing Sobol sequences with better two-dimensional projections")."""


def check_output(output: str, status: int) -> None:
    """Asserts that the program found everything right."""
    names = ["gemm", "gemv", "dot, axpy", "getrf", "C2C", "R2C, C2R", "SpMV", "uniform", "",
             "NVRTC_SUCCESS", "NVRTC_ERROR_COMPILATION"]  # fmt: skip
    expected = [f"{name} right" for name in names]
    expected[8] = f"Sobol {SOBOL[0]} {SOBOL[1]}"
    found = output.splitlines()
    assert len(found) == len(expected)
    numbers = [float(word) for word in found[8].split()[1:]]
    wanted = [float(word) for word in " ".join(SOBOL).split()]
    assert numbers == [pytest.approx(each, abs=1e-6) for each in wanted]
    found[8] = expected[8]
    assert (found, status) == (expected, 0)


def test_libraries() -> None:
    ended = run(PROGRAMS / "libraries.cu")
    check_output(ended.stdout, ended.returncode)
    said = "computed on the host, not by kernels: cublas, cufft, curand, cusparse, nvrtc"
    assert said in ended.stderr


def test_a_capture_has_no_place_for_them() -> None:
    ended = run(PROGRAMS / "libraries.cu", "capture")
    assert ended.returncode == 2
    assert "has no function cublasSaxpy_v2, in a stream capture" in ended.stderr


def test_tables_of_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    with pytest.raises(MissingDependencyError, match="pip install nvidia-curand"):
        curand._directions(2)
    assert curand._directions(1)[:3] == [1 << 31, 3 << 30, 5 << 29]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_declares_what_it_reads(name: str) -> None:
    host = FUNCTIONS[name]
    names = [each for each, _ in host.parameters]
    assert len({*names}) == len(names) and {kind for _, kind in host.parameters} <= LETTERS.keys()


def test_a_negative_step_starts_at_the_end() -> None:
    data = (ctypes.c_float * 5)(*range(5))
    assert strided(ctypes.addressof(data), 3, -2, "<f4").tolist() == [4, 2, 0]
