"""Keys of cache entries: digests of everything that an entry depends on."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

_PACKAGES = ("tcir", "torch-mlir", "llvmlite", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm")
"""Packages that generate code: tcir, MLIR, LLVM, ptxas, nvdisasm."""


def digest(*parts: object) -> str:
    """Digest of texts, and of values whose `repr` determines them."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:40]


@cache
def versions() -> str:
    """Versions of tcir (with its source), MLIR, LLVM and ptxas."""
    return " ".join([*map(_version, _PACKAGES), f"source {_source()}"])


def _version(package: str) -> str:
    import importlib.metadata

    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def _source() -> str:
    """Digest of the package's files; during development the version number stays the same while
    the source changes."""
    root = Path(__file__).parents[1]
    whole = hashlib.sha256()
    for folder, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        for file in sorted(file for file in files if file.endswith(".py")):
            path = Path(folder, file)
            whole.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:40]
