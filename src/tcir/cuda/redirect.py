"""Redirects functions of loaded libraries: CUDA's runtime, if a library contains its own copy of
it, and functions that return machine code.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tcir.errors import MissingDependencyError

_JUMPS = {
    "x86_64": bytes.fromhex("ff2500000000"),  # jmp [rip]
    "aarch64": bytes.fromhex("5000005800021fd6"),  # ldr x16, .+8; br x16
}
"""Instructions that jump to the address after them, by machine."""


def redirect(places: Mapping[int, int]) -> None:
    """Makes each function at an address jump to another function.

    Raises MissingDependencyError on a CPU architecture whose jump instruction is not known.
    """
    jump = _JUMPS.get(platform.machine())
    if jump is None:
        raise MissingDependencyError(
            f"expected {' or '.join(_JUMPS)}, got {platform.machine()}: libraries with a CUDA "
            "runtime of their own cannot be redirected there"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for at, target in places.items():
        code = jump + target.to_bytes(8, "little")
        first = at // mmap.PAGESIZE * mmap.PAGESIZE
        size = at + len(code) - first
        for writable in (mmap.PROT_WRITE, 0):
            if writable == 0:
                ctypes.memmove(at, code, len(code))
            if libc.mprotect(first, size, mmap.PROT_READ | mmap.PROT_EXEC | writable):
                raise OSError(ctypes.get_errno(), "mprotect")


def functions(library: Path) -> dict[str, int]:
    """Addresses of the functions of a loaded library, by name; local functions are included. They
    are found by nm.
    """
    nm = shutil.which("nm")
    if not nm:
        raise MissingDependencyError("CUDA programs need nm, a part of the linker (binutils)")
    command = [nm, "--defined-only", str(library)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    base = _base(library)
    rows = [line.split() for line in printed.splitlines()]
    return {row[2]: base + int(row[0], 16) for row in rows if len(row) == 3 and row[1] in "tT"}


def _base(library: Path) -> int:
    """Address at which a library is loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[2] == "00000000" and words[5] == str(library.resolve()):
            return int(words[0].split("-")[0], 16)
    raise FileNotFoundError(f"{library} is not loaded")
