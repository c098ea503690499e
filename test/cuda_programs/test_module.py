"""`tcir.cuda.Module`: kernels of CUDA C++ and PTX by name, launched with numpy arrays."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

import tcir
from tcir.codegen import assemble
from tcir.doors.causes import source_name

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "examples" / "saxpy.ptx"


@pytest.fixture(scope="module")
def kernels() -> str:
    """PTX of kernels.cu."""
    return tcir.cuda.Module.from_source(Path(__file__).parent / "kernels.cu").ptx


def inputs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Without zeros, all different."""
    return np.linspace(0.25, 3, n, dtype=np.float32), np.linspace(-4, -1, n, dtype=np.float32)


@pytest.mark.parametrize("given", [SAXPY, str(SAXPY), SAXPY.read_text()])
def test_a_kernel_of_a_file_or_a_text(given: str | Path) -> None:
    saxpy = tcir.cuda.Module.from_ptx(given).kernel("saxpy")
    x, y = inputs(1000)
    want = (1.5 * x.astype(float) + y).astype(np.float32)
    report = saxpy(x, y, 1.5, 1000, grid=8, block=128)
    assert report.ok
    assert (y == want).all()
    assert len(saxpy.parameters) == 4


def test_names_of_cplusplus(kernels: str) -> None:
    module = tcir.cuda.Module.from_ptx(kernels)
    assert "_ZN4poly6hornerEPKfPfi" in module.kernels
    assert module.kernel("horner").name == "_ZN4poly6hornerEPKfPfi"
    assert module.kernel("_Z3sayi").name == module.kernel("say").name
    assert source_name("_Z6scaledILi2EEvPKfPf") == "scaled"
    with pytest.raises(tcir.UnknownNameError, match=r"the name of one kernel, got 'scaled' of "):
        module.kernel("scaled")
    with pytest.raises(tcir.UnknownNameError, match=r"got '_Z3sayf'; did you mean '_Z3sayi'"):
        module.kernel("_Z3sayf")


def test_variables_stay_between_launches(kernels: str) -> None:
    module = tcir.cuda.Module.from_ptx(kernels)
    assert module.variable("first").view(np.uint32) == [7]
    coefficients = np.array([3, -2, 0.5, 1], np.float32)
    module.variable("coefficients").view(np.float32)[:] = coefficients
    x, y = inputs(300)
    for _ in range(2):
        module.kernel("horner")(x, y, 300, grid=3, block=128)
    want = np.polynomial.polynomial.polyval(x.astype(float), coefficients)
    assert np.allclose(y, want, rtol=1e-6)
    assert module.variable("calls").view(np.uint32) == [2]
    other = tcir.cuda.Module.from_ptx(kernels)  # has variables of its own
    assert other.variable("calls").view(np.uint32) == [0]
    with pytest.raises(tcir.UnknownNameError, match="got 'call'; did you mean 'calls'"):
        module.variable("call")


def test_without_a_dictionary_each_launch_begins_anew(kernels: str) -> None:
    """`run_ptx`, as ever: nothing is left of a launch but its arrays."""
    x, y = inputs(32)
    kept: dict[str, np.ndarray] = {}
    for variables in (None, kept, None, kept):
        tcir.run_ptx(kernels, entry="_ZN4poly6hornerEPKfPfi", grid=1, block=32, args=[x, y, 32],
                     variables=variables)  # fmt: skip
    assert kept["calls"].view(np.uint32) == [2]


def test_prints_and_asserts(kernels: str, capsys: pytest.CaptureFixture[str]) -> None:
    say = tcir.cuda.Module.from_ptx(kernels).kernel("say")
    say(5, grid=2, block=32)
    assert capsys.readouterr().out == "block 0 of 2: 5\nblock 1 of 2: 5\n"
    with pytest.raises(tcir.VerdictError, match=r"what < 10"):
        say(10, grid=2, block=32)


def test_a_race_is_an_exception_or_in_the_report(kernels: str) -> None:
    race = tcir.cuda.Module.from_ptx(kernels).kernel("race")
    out = np.zeros(1, np.int32)
    with pytest.raises(tcir.VerdictError, match=r"race: .*kernels\.cu:31"):
        race(out, grid=1, block=64)
    report = race.launch(out, grid=1, block=64)
    assert [f.code for f in report.findings] == ["race"] * len(report.findings)
    assert report.findings and not report.ok


def test_launches_that_do_not_fit(kernels: str) -> None:
    horner = tcir.cuda.Module.from_ptx(kernels).kernel("horner")
    x, y = inputs(32)
    with pytest.raises(tcir.LaunchError, match=r"expected 3 .*, got 2"):
        horner(x, y, grid=1, block=32)
    with pytest.raises(tcir.LaunchError, match="block: expected a size"):
        horner(x, y, 32, grid=1)


def test_a_cubin_is_refused_with_the_way_out(tmp_path: Path) -> None:
    cubin = assemble(SAXPY.read_text(), target="sm_100a").data
    words = r"machine code \(SASS\) of sm_100 alone; .* executes PTX: .*nvcc -ptx .* cuobjdump -ptx"
    file = tmp_path / "saxpy.cubin"
    file.write_bytes(cubin)
    with pytest.raises(tcir.InputError, match=f"^cubin: expected PTX, got a cubin.*{words}"):
        tcir.cuda.Module.from_cubin(cubin)
    for load in (tcir.cuda.Module.from_cubin, tcir.cuda.Module.from_ptx):
        with pytest.raises(tcir.InputError, match=f"^{re.escape(str(file))}: .*{words}"):
            load(file)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0), "got a fat binary; .*cuobjdump -ptx"),
        (b"\x7fELF" + bytes(60), r"expected a cubin .*; in any case .* nvcc -ptx"),
        (b"\xff\xfe.version", "expected PTX text"),
        (b"int main() {}\n", "expected"),
    ],
)
def test_files_that_are_no_ptx(data: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "k.bin"
    file.write_bytes(data)
    with pytest.raises(tcir.InputError, match=words):
        tcir.cuda.Module.from_ptx(file)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for load in (
        tcir.cuda.Module.from_cubin,
        tcir.cuda.Module.from_ptx,
        tcir.cuda.Module.from_source,
    ):
        with pytest.raises(tcir.InputError, match=r"[Nn]o such file"):
            load(tmp_path / "k.ptx")


def test_what_nvcc_says(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k() { what(); }\n")
    with pytest.raises(tcir.InputError, match=r'identifier "what" is undefined'):
        tcir.cuda.Module.from_source(tmp_path / "k.cu")
