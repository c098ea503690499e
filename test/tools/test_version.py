"""--version of every command."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import tcir


@pytest.mark.parametrize("name", ["tc_opt", "tc_run", "tc_viz", "tc_bench", "tc_reduce"])
def test_versions(name: str) -> None:
    words = [sys.executable, "-m", f"tcir.tools.{name}", "--version"]
    done = subprocess.run(words, capture_output=True, text=True)
    first, *others = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert first.startswith(f"{name.replace('_', '-')} {tcir.__version__} (Python 3.")
    assert re.search(r"^  llvmlite [\d.]+: LLVM \d+\.\d+\.\d+$", done.stdout, re.M)
    assert [line.split()[0] for line in others] == [
        "torch-mlir", "llvmlite", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm", "numba"
    ]  # fmt: skip
