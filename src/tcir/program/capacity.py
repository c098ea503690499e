"""Memory that an execution takes, checked before it is taken."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from tcir.errors import IncompleteError, InputError
from tcir.target import DEFAULT_TARGET

if TYPE_CHECKING:
    from tcir.interp import OutputSpec

SHADOW = 4
"""Bytes of this process for a byte of a kernel's buffers, at least: what it holds, which of it is
defined, who wrote and who read it."""
DRAWN = 32
"""Bytes of this process for an element of a random input, at least: whole numbers and float64."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def host_memory() -> int:
    """Bytes that this process may use: the machine's, or its container's."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _CGROUP.read_text().strip() if _CGROUP.exists() else "max"
    return min(machine, int(limit)) if limit.isdigit() else machine


def check_host(nbytes: int) -> None:
    """IncompleteError if an execution that takes so many bytes would be killed."""
    if nbytes > (most := host_memory()):
        raise IncompleteError(
            f"expected an execution within this machine's {most} bytes of memory, got at least "
            f"{nbytes}: execute smaller shapes"
        )


def check_arrays(inputs: Iterable[OutputSpec], outputs: Iterable[OutputSpec]) -> None:
    """IncompleteError if a program's arrays are too large to draw and to compute."""
    drawn = sum(prod(spec.shape) for spec in inputs)
    check_host(DRAWN * drawn + sum(prod(s.shape) * s.dtype.itemsize for s in outputs))


def check_workspaces(workspaces: Mapping[int, int]) -> None:
    """InputError for sizes that no device has; IncompleteError if this machine has too little."""
    most = DEFAULT_TARGET.memory
    for number, size in workspaces.items():
        if not 0 <= size <= most:
            raise InputError(
                f"expected workspace {number} of 0 to {most} bytes (the memory of "
                f"{DEFAULT_TARGET.name}), got {size}"
            )
    check_host(SHADOW * sum(workspaces.values()))
