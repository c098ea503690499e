"""Compiles the kernels to machine code of the computer on which tcir runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tcir.interp.ptx.kernels.template import PREFIX
from tcir.interp.ptx.lockstep.native.kernels import TEXT
from tcir.machine.jit import native


@cache
def address(kernel: str) -> int:
    """Address of the code of a kernel of `TEXT`, by its name."""
    native.link_texts(Path(__file__), {"replay": TEXT})
    found = native.address(PREFIX + kernel)
    if not found:
        raise KeyError(f"expected a kernel, got {kernel}")
    return found


@cache
def runner() -> Callable[[int, int, int, int, int], None]:
    """Returns the compiled function that runs steps. Its parameters are the address of the steps,
    their number, the half-open range of CTAs, and the number of CTAs per pass.
    """
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)(address("run"))
