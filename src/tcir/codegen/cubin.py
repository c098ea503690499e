"""PTX to cubin, by ptxas."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tcir.codegen.tools import find_tool
from tcir.errors import Error, InputError
from tcir.target import DEFAULT_TARGET


@dataclass(frozen=True)
class Cubin:
    """An assembled module. The counts are the largest over its kernels.

    registers:    32-bit registers per thread.
    spill_bytes:  stores plus loads of spilled registers, bytes.
    shared_bytes: static shared memory of a CTA, bytes (dynamic shared memory is the launch's).
    log:          the output of ptxas with ``-v``.
    """

    data: bytes
    registers: int
    spill_bytes: int
    shared_bytes: int
    log: str


_UNWRITTEN = re.compile(r"Failed to write|[Nn]o space left|Failed to (?:open|create)[^\n]*outp")


def assemble(ptx: str, target: str = DEFAULT_TARGET.name) -> Cubin:
    """Assembles `ptx`; raises `Error` with ptxas' message if it reports an error or warns.

    A warning is an error because ptxas warns where it drops a directive the program relies on, for
    example ``setmaxnreg`` (C7504).
    """
    with tempfile.TemporaryDirectory(prefix="tcir-ptxas-") as folder:
        source, output = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        done = subprocess.run(
            [find_tool("ptxas"), f"-arch={target}", "-v", source.name, "-o", output.name],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        log = done.stdout + done.stderr
        if done.returncode != 0 and _UNWRITTEN.search(log):
            raise InputError(
                f"cannot write to the temporary folder '{tempfile.gettempdir()}' (full?): "
                f"{_first_complaint(log)}; TMPDIR names another"
            )
        if done.returncode != 0:
            raise Error(f"ptxas rejected the kernel: {_first_complaint(log)}")
        if re.search(r"\bwarning\b|\bignored\b", log):
            raise Error(f"ptxas dropped something: {_first_complaint(log)}")
        data = output.read_bytes()
    return Cubin(
        data=data,
        registers=_largest(r"Used (\d+) registers", log),
        spill_bytes=_largest(r"(\d+) bytes spill stores", log)
        + _largest(r"(\d+) bytes spill loads", log),
        shared_bytes=_largest(r"(\d+) bytes smem", log),
        log=log,
    )


def _largest(pattern: str, log: str) -> int:
    return max((int(found) for found in re.findall(pattern, log)), default=0)


def _first_complaint(log: str) -> str:
    for line in log.splitlines():
        if re.search(r"error|fatal|warning|ignored", line):
            return line.strip()
    return log.strip() or "no message"
