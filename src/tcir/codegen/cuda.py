"""CUDA C++ to PTX, by the nvcc that the ptxas dependency brings along."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tcir.codegen.tools import find_tool
from tcir.errors import InputError


def compile_cuda(path: Path, target: str) -> str:
    """PTX of a .cu file, with its source lines. nvcc needs a host compiler, such as g++.

    Raises `InputError` with nvcc's words, `MissingDependencyError` where there is no nvcc.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    nvcc = find_tool("nvcc")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.ptx"
        arch = f"-arch={target.replace('sm_', 'compute_')}"
        done = subprocess.run(
            [nvcc, "-ptx", "-lineinfo", arch, "-std=c++17", path, "-o", out],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode or not out.exists():
            raise InputError(f"nvcc {path}: {(done.stderr or done.stdout).strip()}")
        return out.read_text()
