"""Compiles C libraries for a program, and finds the undefined symbols of a library."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tcir.errors import MissingDependencyError


def compile_library(source: Path, soname: str = "") -> Path:
    """Compiles a library next to its source, with the C compiler that nvcc also uses, and returns
    its path. Raises MissingDependencyError if there is no compiler, or if it fails.

    soname: the name by which other libraries find it once it is loaded
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise MissingDependencyError("CUDA programs need a C compiler: cc, gcc, or its path in CC")
    out = source.with_name(soname) if soname else source.with_suffix(".so")
    command = [*compiler.split(), "-O1", "-shared", "-fPIC", "-w", str(source), "-o", str(out)]
    command += [f"-Wl,-soname,{soname}"] if soname else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingDependencyError(f"{compiler} {source.name}: {done.stderr.strip()}")
    return out


def undefined_symbols(library: Path) -> list[str]:
    """Names that a library imports from other libraries, found by nm. Raises MissingDependencyError
    without nm, which is installed with the linker (binutils).
    """
    nm = shutil.which("nm")
    if not nm:
        raise MissingDependencyError("CUDA programs need nm, a part of the linker (binutils)")
    command = [nm, "-D", "--undefined-only", "--no-demangle", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [row[-1].partition("@")[0] for row in rows if row[:1] == ["U"]]
