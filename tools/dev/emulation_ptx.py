"""Compiles the helper functions of the emulation: `python -m tcir.tools.dev.emulation_ptx`.

nvcc 13.0, which must be on PATH, compiles `tensor_core.cu` to `src/tcir/emulation/tensor_core.ptx`,
which is part of the package. The first line of the PTX has a digest of the sources, which a test
checks.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "src/tcir/emulation"
SOURCE, PTX = FOLDER / "tensor_core.cu", FOLDER / "tensor_core.ptx"
SOURCES = (SOURCE, *(FOLDER / f"{name}.cuh" for name in ("approximate", "core", "fuzz")))


def header() -> str:
    """The first line of PTX that is compiled from the present sources."""
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in SOURCES)).hexdigest()
    return f"// of tensor_core.cu and what it includes, SHA-256 {digest}"


def main() -> int:
    """Compiles the file; returns 0 if it was written."""
    command = ["nvcc", "-arch=sm_90a", "-ptx", "-rdc=true", "-O3", "-o", "-", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return 1
    code = done.stdout[done.stdout.index(".version") :]
    # what is static has a digest in its name, which each build makes anew
    code = re.sub(
        r"_ZN\d+_INTERNAL_\w+?_cu_[0-9a-f]{8}\d+([a-z_]+)E\w+?(?=_param|\b)",
        r"tcir_emulation_\1",
        code,
    )
    PTX.write_text(f"{header()}\n{code}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
