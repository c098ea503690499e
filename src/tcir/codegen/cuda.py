"""Compiles CUDA C++ to PTX or to a library, with the nvcc that is installed together with ptxas."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tcir.codegen.crash import signal_name
from tcir.codegen.tools import find_tool
from tcir.errors import InputError, NativeCrashError
from tcir.files import signals_wait

LAUNCHES_FROM_KERNELS = (
    "launches from kernels are made by cudadevrt, a library of machine code, which is not "
    "executed: launch from the host, or call a device function in place of the kernel"
)
_WHY = {"requires separate compilation mode": LAUNCHES_FROM_KERNELS}
"""What tcir adds to a message of nvcc that contains these words."""


def compile_cuda(path: Path, target: str, flags: Sequence[str] = ()) -> str:
    """Compiles a .cu file to PTX with source lines. nvcc needs a host compiler, such as g++.

    flags: further flags for nvcc. Raises `InputError` with nvcc's message, and
        `MissingDependencyError` if nvcc is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.ptx"
        arch = f"-arch={target.replace('sm_', 'compute_')}"
        _nvcc(path, out, ["-ptx", arch, *flags])
        return out.read_text()


def compile_program(path: Path, target: str, out: Path, flags: Sequence[str] = ()) -> None:
    """Compiles a .cu file, including its host code, to a shared library that contains its PTX as
    text and no CUDA runtime. Raises the errors of `compile_cuda`.

    As in an executable, the program's own symbols precede those of other libraries (-Bsymbolic), so
    that the program may define `malloc`, or variables with the names of driver functions.

    flags: further flags for nvcc
    """
    arch = target.replace("sm_", "compute_")
    library = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "--compress-mode=none"]
    library += ["-Xlinker", "-Bsymbolic"]
    _nvcc(path, out, [*library, "-gencode", f"arch={arch},code={arch}", *flags])


def _always(flags: Sequence[str]) -> list[str]:
    """Flags that nvcc always receives, with the C++ standard unless `flags` set one.

    CCCL rejects the headers of another minor version of CUDA, such as those that come with PyTorch,
    although it works with them; a definition disables this check.
    """
    given = any(re.match("--?std(=|$)", flag) for flag in flags)
    return ["-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK", *([] if given else ["-std=c++17"])]


def _nvcc(path: Path, out: Path, flags: Sequence[str]) -> None:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    nvcc = None
    command: list[str | Path] = [find_tool("nvcc"), *_always(flags), *flags, "-lineinfo", path]
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with signals_wait():  # for its process group's number
                nvcc = subprocess.Popen(
                    [*command, "-o", out],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    process_group=0,
                    env={**os.environ, "TMPDIR": scratch},
                )
            printed, said = nvcc.communicate()
        except BaseException:  # this process was told to end: nvcc's own processes, too
            if nvcc is not None:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.killpg(nvcc.pid, signal.SIGKILL)  # SIGTERM would wait, too
                nvcc.communicate()
            raise
    died = nvcc.returncode < 0 and signal_name(-nvcc.returncode)
    died = died or next((line for line in said.splitlines() if "died due to signal" in line), "")
    if died:
        raise NativeCrashError(
            f"nvcc {path}: the compiler crashed ({died.strip()}); this is a bug of nvcc: report it "
            "to NVIDIA with that file, or try another version of nvidia-cuda-nvcc"
        )
    if nvcc.returncode or not out.exists():
        why = next((f"; {why}" for words, why in _WHY.items() if words in said), "")
        raise InputError(f"nvcc {path}: {(said or printed).strip()}{why}")
