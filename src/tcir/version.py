"""``--version`` of the commands, which prints the versions of tcir and of its code generators."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tcir import __version__
from tcir.streams import write_output

TOOLS = {
    "torch-mlir": "MLIR",
    "llvmlite": "LLVM",
    "nvidia-cuda-nvcc": "ptxas",
    "nvidia-cuda-nvdisasm": "nvdisasm",
    "numba": "compiled parts of the machine",
}
"""Packages, and the tool that each provides."""


class Version(argparse.Action):
    """Prints the versions, and ends the command."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="versions, also of MLIR, LLVM, ptxas")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        write_output(text(parser.prog).encode())
        parser.exit()


def _of_llvm() -> str:
    """LLVM's version, which llvmlite's version does not state."""
    import llvmlite.binding

    return ".".join(map(str, llvmlite.binding.llvm_version_info))


def text(program: str) -> str:
    """Text with the versions, one line each."""
    import importlib.metadata  # 20 ms, of which a command without --version needs nothing
    import platform

    lines = [f"{program} {__version__} (Python {platform.python_version()})"]
    for package, role in TOOLS.items():
        try:
            number = f" {_of_llvm()}" if package == "llvmlite" else ""
            lines.append(f"  {package} {importlib.metadata.version(package)}: {role}{number}")
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"  {package} is not installed: {role}")
    return "\n".join([*lines, ""])
