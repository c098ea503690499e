"""Keys of results: what a row depends on, as a digest."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from functools import cache
from pathlib import Path

import tcir
from tcir.errors import InputError
from tcir.sweep.space import Combination
from tcir.sweep.work import Program
from tcir.target import TARGETS

_PACKAGES = ("torch-mlir", "llvmlite", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm")
"""Those that make code, and count it."""


def digest(*parts: object) -> str:
    """Of texts, or of what prints as all that it is."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def key_of(program: Program, combination: Combination) -> str:
    """Of module, passes with their options, target and versions."""
    try:
        passes = combination.passes()
    except InputError as error:  # a value that a pass refuses: the row says so
        passes = f"{combination}: {error}"
    target = TARGETS.get(program.target)
    return digest(program.text, program.entry, combination, passes, target, versions())


@cache
def versions() -> str:
    """Of tcir with its source, of LLVM, and of ptxas."""
    return " ".join([f"tcir {tcir.__version__} {_source()}", *map(_version, _PACKAGES)])


def _version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def _source() -> str:
    """A digest of the package's files: a version that is worked on has one number for many."""
    root = Path(tcir.__file__).parent
    whole = hashlib.sha256()
    for folder, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        for file in sorted(file for file in files if file.endswith(".py")):
            path = Path(folder, file)
            whole.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:32]
