"""--version of every command."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import tcir

COMMANDS = {
    f"tcir.tools.tc_{name}": f"tc-{name}" for name in ("opt", "run", "viz", "bench", "reduce")
}
COMMANDS |= {door: f"python -m {door}" for door in ("tcir.triton", "tcir.cute", "tcir.cuda")}


@pytest.mark.parametrize("module", COMMANDS)
def test_versions(module: str) -> None:
    words = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(words, capture_output=True, text=True)
    first, *others = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert first.startswith(f"{COMMANDS[module]} {tcir.__version__} (Python 3.")
    assert re.search(r"^  llvmlite [\d.]+: LLVM \d+\.\d+\.\d+$", done.stdout, re.M)
    assert [line.split()[0] for line in others] == [
        "torch-mlir",
        "llvmlite",
        "nvidia-cuda-nvcc",
        "nvidia-cuda-nvdisasm",
        "numba",
    ]
