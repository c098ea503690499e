"""CUDA C++ to PTX for sm_100a with the nvcc of a CUDA toolkit; compilations are kept in a cache.

nvcc: $TCIR_PEERS_NVCC, or the one on the PATH. The cache, $TCIR_PEERS_CACHE or
~/.cache/tcir/peers, is keyed by the source, the flags, the headers' package and nvcc's version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path


def compiler() -> str:
    found = os.environ.get("TCIR_PEERS_NVCC") or shutil.which("nvcc")
    if not found:
        sys.exit("nvcc: install the CUDA toolkit (13.0 or later), or set TCIR_PEERS_NVCC")
    return found


def package(distribution: str, folder: str) -> tuple[Path, str]:
    """The folder `folder` inside an installed distribution, not imported; and its version."""
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        sys.exit(f"{distribution}: {sys.executable} -m pip install --no-deps {distribution}")
    top, _, rest = folder.partition("/")
    spec = importlib.util.find_spec(top)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations))) / rest, version


def cache() -> Path:
    named = os.environ.get("TCIR_PEERS_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "tcir" / "peers"


def _kept(source: str, key: str, flags: tuple[str, ...], name: str, suffix: str) -> Path:
    nvcc = compiler()
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256("\0".join((source, key, version, *flags)).encode()).hexdigest()[:24]
    cache().mkdir(parents=True, exist_ok=True)
    return cache() / f"{name}-{digest}{suffix}"


def _compile(source: Path, include: list[Path], flags: tuple[str, ...], out: Path) -> None:
    target = ["-gencode", "arch=compute_100a,code=compute_100a", "--expt-relaxed-constexpr", "-w"]
    folders = [f"-I{folder}" for folder in include]
    command = [compiler(), *flags, *target, *folders, str(source), "-o", str(out)]
    subprocess.run(command, capture_output=True, text=True, check=True)


def ptx(source: Path, include: list[Path], key: str, *flags: str) -> str:
    """PTX of the device code. key: what it depends on beside the source's text, flags and nvcc.

    Raises CalledProcessError, nvcc's messages in `stderr`.
    """
    kept = _kept(source.read_text(), key, flags, source.stem, ".ptx")
    if not kept.exists():
        half = kept.with_suffix(f".{os.getpid()}.ptx")
        _compile(source, include, ("-ptx", *flags), half)
        half.rename(kept)
    return kept.read_text()


def program(source: Path, include: list[Path], key: str, *flags: str) -> tuple[Path, str]:
    """The whole program as a shared library without a CUDA runtime, and its PTX; see `ptx`."""
    kept = _kept(source.read_text(), key, flags, source.stem, ".so")
    if not kept.exists():
        with tempfile.TemporaryDirectory() as scratch:
            keep = ("-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "--keep", "--keep-dir")
            half = Path(scratch) / "out.so"
            _compile(source, include, (*keep, scratch, *flags), half)
            shutil.copy(Path(scratch) / f"{source.stem}.ptx", kept.with_suffix(".ptx"))
            shutil.copy(half, kept.with_suffix(f".{os.getpid()}"))
        kept.with_suffix(f".{os.getpid()}").rename(kept)
    return kept, kept.with_suffix(".ptx").read_text()
