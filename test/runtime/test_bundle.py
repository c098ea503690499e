"""Bundles: written by tc-run, sound, dry-run, damaged; run where there is a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.errors import Error, InputError
from tcir.runtime import bundle as bundles
from tcir.runtime.module import architecture
from tcir.runtime.replay import Bundle
from tcir.tools.tc_run import main as tc_run

PTX = Path(__file__).with_name("saxpy.ptx")


def write(folder: Path, capsys: Any) -> Path:
    x = np.arange(1, 257, dtype=np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", x[::-1] * 0.37)
    out = folder / "out"
    arguments = ["--arg", "f32=1.5", "--arg", f"{folder}/x.npy", "--arg", f"{folder}/y.npy"]
    status = tc_run(
        [str(PTX), "--grid", "4", "--block", "64", *arguments, "--arg", "empty=u32,4",
         "--bundle", str(out), "--target", "sm_90a"]
    )  # fmt: skip
    assert status == 0, capsys.readouterr().err
    return out


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """run.py in a process that sees cuda-python and numpy of this environment, and the folder."""
    return subprocess.run(
        [sys.executable, str(folder / "run.py"), *words], capture_output=True, text=True, cwd="/"
    )


@pytest.fixture
def folder(tmp_path: Path, capsys: Any) -> Path:
    return write(tmp_path, capsys)


def test_holds_what_the_machine_computed(folder: Path) -> None:
    found = Bundle.read(folder)
    assert found.description["kernel"] == "saxpy"
    x = np.arange(1, 257, dtype=np.float32)
    y = (np.float32(1.5) * x + x[::-1] * np.float32(0.37)).astype(np.float32)
    expected = found.expected[1].view(np.float32)
    assert np.allclose(expected, y, rtol=1e-6)
    assert found.expected[2].view(np.uint32).tolist() == [0, 1, 2, 3]
    assert set(found.expected) == {1, 2}  # x is not written
    assert (folder / "kernel.ptx").read_text() == PTX.read_text()


def test_dry_run_needs_no_gpu(folder: Path) -> None:
    done = run(folder, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "4 parameters of [4, 8, 8, 8] bytes" in done.stdout


def test_carries_all_it_imports(folder: Path) -> None:
    """The runner takes no module of tcir from elsewhere, and none but numpy and cuda."""
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from tcir.runtime import replay, devices, driver, dlpack, memory, module, timing\n"
        "from tcir.runtime import tensor_map\n"
        "mine = [m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'tcir']\n"
        f"assert all(f.startswith({str(folder)!r}) for f in mine), mine\n"
        "third = {'ml_dtypes', 'numba', 'llvmlite', 'torch_mlir', 'torch'} & set(sys.modules)\n"
        "assert not third, third\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr


def test_without_a_gpu_one_sentence(folder: Path) -> None:
    done = run(folder)
    if done.returncode in (0, 1):
        pytest.skip("there is a GPU")
    assert done.returncode == 2 or "expected a cubin for" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_damage_is_noticed(folder: Path) -> None:
    cubin = bytearray((folder / "kernel.cubin").read_bytes())
    cubin[200] ^= 1
    (folder / "kernel.cubin").write_bytes(bytes(cubin))
    with pytest.raises(InputError, match=r"kernel\.cubin: expected SHA-256"):
        Bundle.read(folder)
    assert run(folder, "--dry-run").returncode == 3


def test_a_changed_expectation_is_noticed(folder: Path) -> None:
    with np.load(folder / "data.npz") as data:
        arrays = {name: data[name].copy() for name in data}
    arrays["expected1"][5] ^= 1
    np.savez_compressed(folder / "data.npz", **arrays)
    with pytest.raises(InputError, match="expected1: expected SHA-256"):
        Bundle.read(folder)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("wgmma.fence.sync.aligned;", "no expected result"),
        ("add.f32 %f3, %f3, %f0; st.global.u32 [%d2+4096], %r0;", "the machine objects to"),
    ],
)
def test_no_bundle_without_a_sound_run(tmp_path: Path, more: str, words: str) -> None:
    text = PTX.read_text().replace("st.global.f32", f"{more} st.global.f32")
    with pytest.raises(Error, match=words):
        bundles.write(
            tmp_path / "out", text, entry="saxpy", grid=1, block=1, target="sm_90a",
            args=[np.float32(1), *(np.zeros(4, np.float32) for _ in range(3))],
        )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_folder_in_use_is_refused(tmp_path: Path, capsys: Any) -> None:
    write(tmp_path, capsys)
    with pytest.raises(InputError, match="new or empty folder"):
        bundles.write(tmp_path / "out", PTX.read_text(), entry="saxpy", grid=1, block=1)


MATMUL = """
func.func @matmul(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>) -> tensor<64x64xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %out = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x64xf16>)
      outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}
"""


def test_a_program_for_hopper(tmp_path: Path) -> None:
    program, out = tmp_path / "matmul.mlir", tmp_path / "matmul"
    program.write_text(MATMUL)
    bundles.write_program(out, str(program), "matmul-warp", target="sm_90")
    found = Bundle.read(out)
    assert found.description["target"] == "sm_90"
    a, b = (x.view(np.float16).astype(np.float32) for x in found.before[:2])
    expected = a.reshape(64, 32) @ b.reshape(32, 64)
    assert (found.expected[2].view(np.float32).reshape(64, 64) == expected).all()
    assert architecture(found.cubin) == "sm_90"


@pytest.mark.gpu
def test_runs(folder: Path) -> None:
    done = run(folder)
    if done.returncode in (2, 3):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((folder / "report.json").read_text())
    assert report["equal"] and report["milliseconds"]["median"] > 0


@pytest.mark.gpu
def test_reports_a_difference(folder: Path) -> None:
    """An expectation that is wrong, with its digest, so that only the comparison can notice."""
    with np.load(folder / "data.npz") as data:
        arrays = {name: data[name].copy() for name in data}
    arrays["expected1"][5] ^= 1
    np.savez_compressed(folder / "data.npz", **arrays)
    description = json.loads((folder / "launch.json").read_text())
    description["buffers"][1]["expected_sha256"] = bundles.digest(arrays["expected1"])
    (folder / "launch.json").write_text(json.dumps(description))
    done = run(folder)
    if done.returncode in (2, 3):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 1
    report = json.loads((folder / "report.json").read_text())
    assert report["buffers"][0]["different"] == 1 and report["buffers"][0]["first"] == 5
