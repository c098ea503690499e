"""The text that tc-run runs: PTX, or CUDA C++ that the bundled nvcc compiles."""

from __future__ import annotations

from pathlib import Path

from tcir.codegen.cuda import compile_cuda
from tcir.files import read_bytes
from tcir.run import LaunchError
from tcir.streams import read_input


def read_source(file: str, target: str) -> tuple[Path | None, str]:
    """Path (None: standard input) and PTX of a file. Raises LaunchError for a file that is neither
    PTX nor CUDA C++.
    """
    path = None if file == "-" else Path(file)
    if path is not None and path.suffix == ".cu":
        return path, compile_cuda(path, target)
    data = read_bytes(path, pipes=True) if path else read_input()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise LaunchError(
            f"{file}: expected PTX text, got byte {data[error.start]:#04x} at offset {error.start}"
        ) from None
    if path is not None and path.suffix == ".mlir":
        raise LaunchError(
            f"{file}: expected PTX or CUDA C++ (.cu), got MLIR; compile it: tc-opt {file} "
            "--pipeline=NAME --emit=ptx -o k.ptx, then tc-run k.ptx (or --pipeline NAME --bundle "
            "DIR, for a GPU)"
        )
    return path, text
