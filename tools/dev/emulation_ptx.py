"""Compiles the helper functions of the emulation: `python -m tcir.tools.dev.emulation_ptx`.

`src/tcir/emulation/tensor_core.ptx` is made of `tensor_core.cu` by nvcc 13.0 and shipped; its first
line has the digest of the source, which a test compares. nvcc is the one on PATH.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "src/tcir/emulation"
SOURCE, PTX = FOLDER / "tensor_core.cu", FOLDER / "tensor_core.ptx"


def header() -> str:
    """The first line of PTX made of the source as it is."""
    return f"// of tensor_core.cu, SHA-256 {hashlib.sha256(SOURCE.read_bytes()).hexdigest()}"


def main() -> int:
    """0 if it was written."""
    command = ["nvcc", "-arch=sm_90a", "-ptx", "-rdc=true", "-O3", "-o", "-", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return 1
    code = done.stdout[done.stdout.index(".version") :]
    PTX.write_text(f"{header()}\n{code}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
