"""Finds the assembler, compiler and disassembler in the packages that tcir depends on."""

from __future__ import annotations

import importlib.util
import platform
import sys
from functools import cache
from pathlib import Path

from tcir.errors import MissingDependencyError

_PACKAGES = {
    "ptxas": "nvidia-cuda-nvcc",
    "nvcc": "nvidia-cuda-nvcc",
    "nvdisasm": "nvidia-cuda-nvdisasm",
}


@cache
def find_tool(name: str) -> Path:
    """Path of ``ptxas``, ``nvcc`` or ``nvdisasm`` in these packages; copies on PATH are never used.

    Raises `MissingDependencyError` with the reason if there is none.
    """
    package = _PACKAGES[name]
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(root).glob(f"cu*/bin/{name}*"), reverse=True):
            if found.name in (name, f"{name}.exe"):
                return found
    machine = f"{sys.platform} {platform.machine()}"
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise MissingDependencyError(
            f"{name} comes with the package {package}, which has wheels for Linux x86-64 and "
            f"aarch64 only, got {machine}; everything up to PTX works here"
        )
    raise MissingDependencyError(
        f"{name} from the package {package} is not installed; `pip install {package}`"
    )
