"""Kernels in a folder, as `bench/launch_hopper.py` launches them where there is no MLIR."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from endtoend.product_text import program
from runtime import fake_driver

import tcir
from tcir.testing import assert_same_as_gpu

from .prepared import bytes_of, load, save

HERE = Path(__file__).resolve().parent
WITHOUT_MLIR = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mlir", "torch_mlir"):
            raise ImportError(name)

sys.meta_path.insert(0, Nothing())
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import numpy as np
import tcir.testing
from hopper.prepared import bytes_of, load

kernel = load(Path(sys.argv[1]))
(result,) = map(np.zeros_like, kernel.wanted[1])
kernel(*kernel.inputs[1], result)
assert (bytes_of(result) == bytes_of(kernel.wanted[1][0])).all()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product of bytes: a repacking kernel, a workspace, and the product."""
    found = tmp_path_factory.mktemp("prepared") / "i8"
    save(found, tcir.compile(program(72, 32, 64, "i8"), "gemm", target="sm_90a"))
    return found


def test_without_mlir(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MLIR, str(folder), str(HERE.parent)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_launched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load(folder)
    assert len(kernel.launches.launches) == 2
    sizes = {
        launch.name: ([128 if p["kind"] == "tensor_map" else 8 for p in launch.params], kernel.ptx)
        for launch in kernel.launches.launches
    }
    fake_driver.install(monkeypatch, sizes, (9, 0))
    results = [np.zeros_like(array) for array in kernel.wanted[0]]
    kernel.launch(*kernel.inputs[0], *results)
    assert bytes_of(results[0]).tobytes() == bytes_of(kernel.wanted[0][0]).tobytes()
    assert_same_as_gpu(kernel, *kernel.inputs[1])  # type: ignore[arg-type]
    fake_driver.forget()
