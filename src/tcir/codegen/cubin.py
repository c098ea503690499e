"""PTX to cubin, by ptxas or by nvJitLink."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcir.codegen.crash import crashed
from tcir.codegen.tools import find_tool
from tcir.codegen.worker import WORKER
from tcir.errors import Error, InputError, MissingDependencyError, UnknownNameError, did_you_mean
from tcir.target import DEFAULT_TARGET

PTXAS, NVJITLINK = "ptxas", "nvjitlink"


@dataclass(frozen=True)
class Cubin:
    """An assembled module. Each count is the largest over the module's kernels.

    registers:    32-bit registers per thread
    spill_bytes:  stores plus loads of spilled registers, in bytes
    shared_bytes: static shared memory of a CTA, in bytes; dynamic shared memory is set by the
        launch
    log:          the output of the assembler with ``-v``
    """

    data: bytes
    registers: int
    spill_bytes: int
    shared_bytes: int
    log: str


_UNWRITTEN = re.compile(r"Failed to write|[Nn]o space left|Failed to (?:open|create)[^\n]*outp")


def assemble(ptx: str, target: str = DEFAULT_TARGET.name, assembler: str = PTXAS) -> Cubin:
    """Assembles `ptx` with ``ptxas`` or with ``nvjitlink``. The latter is the library nvJitLink,
    called through cuda-python, for systems on which ptxas is not installed or cannot be started.

    Raises `Error` with the assembler's message if it reports an error or a warning. Warnings count
    because the assembler only warns if it drops a directive on which the program relies, for
    example ``setmaxnreg`` (C7504), which nvJitLink always drops. Raises `NativeCrashError` if the
    assembler crashes, and `MissingDependencyError` if it is not installed.
    """
    check_assembler(assembler)
    name, run = _ASSEMBLERS[assembler]
    accepted, data, log = run(ptx, target)
    if not accepted and _UNWRITTEN.search(log):
        raise InputError(
            f"cannot write to the temporary folder '{tempfile.gettempdir()}' (full?): "
            f"{_first_complaint(log)}; TMPDIR names another"
        )
    if not accepted:
        raise Error(f"{name} rejected the kernel: {_first_complaint(log)}")
    if re.search(r"\bwarning\b|\bignored\b", log):
        other = f"; assembler={PTXAS} may accept it" if assembler != PTXAS else ""
        raise Error(f"{name} dropped something: {_first_complaint(log)}{other}")
    return Cubin(
        data=data,
        registers=_largest(r"Used (\d+) registers", log),
        spill_bytes=_largest(r"(\d+) bytes spill stores", log)
        + _largest(r"(\d+) bytes spill loads", log),
        shared_bytes=_largest(r"(\d+) bytes smem", log),
        log=log,
    )


def check_assembler(name: str) -> None:
    """Raises `UnknownNameError` if `name` is not the name of an assembler."""
    if not isinstance(name, str) or name not in _ASSEMBLERS:
        raise UnknownNameError(
            f"assembler: expected one of {', '.join(_ASSEMBLERS)}, got '{name}'"
            + did_you_mean(str(name), _ASSEMBLERS)
        )


def _ptxas(ptx: str, target: str) -> tuple[bool, bytes, str]:
    """Assembles with ptxas; returns whether the PTX was accepted, the cubin, and the log."""
    tool = find_tool("ptxas")
    with tempfile.TemporaryDirectory(prefix="tcir-ptxas-") as folder:
        source, output = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        done = subprocess.run(
            # A thread for each processor, which compile the kernels of a module at the same time.
            [tool, f"-arch={target}", "-v", "--split-compile=0", source.name, "-o", output.name],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
        )
        log = done.stdout + done.stderr
        if done.returncode < 0:
            raise crashed(
                f"ptxas {_version(tool)}".strip(),
                done.returncode,
                log,
                ptx,
                ".ptx",
                "this is a bug of ptxas, whatever the kernel: report it to NVIDIA with that "
                "file, or try another version of nvidia-cuda-nvcc, or "
                f"assembler={NVJITLINK} (--assembler={NVJITLINK})",
            )
        return done.returncode == 0, output.read_bytes() if done.returncode == 0 else b"", log


def _nvjitlink(ptx: str, target: str) -> tuple[bool, bytes, str]:
    """Assembles as `_ptxas` does, with nvJitLink in the worker, since the library may crash its
    process."""
    data, log, missing = WORKER.call(
        "nvjitlink",
        ptx,
        ".ptx",
        step="nvJitLink",
        target=target,
        way_out="this is a bug of nvJitLink, whatever the kernel: report it to NVIDIA with that "
        f"file, or try another version of nvidia-nvjitlink, or assembler={PTXAS}",
    )
    if missing:
        raise MissingDependencyError(
            f"nvjitlink needs nvJitLink and cuda-python ({missing}); `pip install tcir[nvjitlink]`"
        )
    return bool(data), data, log


_ASSEMBLERS: dict[str, tuple[str, Callable[[str, str], tuple[bool, bytes, str]]]] = {
    PTXAS: ("ptxas", _ptxas),
    NVJITLINK: ("nvJitLink", _nvjitlink),
}
ASSEMBLERS = tuple(_ASSEMBLERS)


def _version(tool: Path) -> str:
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, errors="replace")
    found = re.search(r"V(\d+\.\d+\.\d+)", said.stdout)
    return found[1] if found else ""


def _largest(pattern: str, log: str) -> int:
    return max((int(found) for found in re.findall(pattern, log)), default=0)


def _first_complaint(log: str) -> str:
    for line in log.splitlines():
        if re.search(r"error|fatal|warning|ignored", line):
            return line.strip()
    return log.strip() or "no message"
