"""Computes the memory that an execution needs, and checks it before it is allocated."""

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
"""Minimum bytes of this process per byte of a kernel's buffers: the value, whether it is defined,
its writer and its readers."""
ELEMENT = 32
"""Minimum bytes of this process per element: of an input, which is drawn as whole numbers and
float64, or of a result, which is kept and compared, and whose writers and readers are recorded."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def host_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's limit."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _CGROUP.read_text().strip() if _CGROUP.exists() else "max"
    return min(machine, int(limit)) if limit.isdigit() else machine


def gigabytes(nbytes: int) -> str:
    """Formats a number of bytes in GB or TB."""
    return f"{nbytes / 1e12:.3g} TB" if nbytes >= 1e12 else f"{nbytes / 1e9:.3g} GB"


def check_host(nbytes: int) -> None:
    """Raises IncompleteError if an execution needs more bytes than this machine has."""
    if nbytes > (most := host_memory()):
        raise IncompleteError(
            f"expected an execution within this machine's {most} bytes of memory, got at least "
            f"{nbytes}: execute smaller shapes"
        )


def check_arrays(
    inputs: Iterable[OutputSpec], outputs: Iterable[OutputSpec], besides: str = ""
) -> None:
    """Raises IncompleteError if a program's arrays are too large to draw and to compute.

    besides: a further reason against the execution, which the message adds
    """
    elements = sum(prod(spec.shape) for spec in (*inputs, *outputs))
    if ELEMENT * elements <= (most := host_memory()):
        return
    raise IncompleteError(
        f"expected an execution within this machine's {gigabytes(most)} of memory, got at least "
        f"{gigabytes(ELEMENT * elements)} for arrays of {elements} elements"
        + (f" ({besides})" if besides else "")
        + "; compile without executing (no --validate-each), or execute smaller shapes: here "
        f"arrays of up to {most // ELEMENT} elements together"
    )


def check_workspaces(workspaces: Mapping[int, int], arena: int = 0) -> None:
    """Checks the memory of workspaces. Raises InputError for sizes beyond the memory of the default
    target, and IncompleteError if this machine has too little memory.

    workspaces: sizes by number. arena: bytes of the allocation that contains them
    """
    most = DEFAULT_TARGET.memory
    for number, size in workspaces.items():
        if not 0 <= size <= most:
            raise InputError(
                f"expected workspace {number} to have 0 to {most} bytes (the memory of "
                f"{DEFAULT_TARGET.name}), got {size}"
            )
    if arena > most:
        raise InputError(
            f"expected workspaces within {most} bytes (the memory of {DEFAULT_TARGET.name}), got "
            f"an end at byte {arena}"
        )
    check_host(SHADOW * sum(workspaces.values()))
