"""Launches a kernel a second time on the same memory, as happens when a model is served.

A kernel that never resets a counter, or assumes that a workspace is zero, is right only in the
first launch. Arrays that the launches write entirely (`tcir.Uninitialized`) must have the same
contents after both launches. Arrays into which the kernel accumulates, or which it reads before it
writes them, may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.ptx.arguments import Uninitialized
from tcir.machine import Machine, MachineError

if TYPE_CHECKING:
    from tcir.run import RunReport

_VARIABLE = "variable "


def variables_of(machine: Machine) -> dict[str, np.ndarray]:
    """Returns copies of the module's variables, by name."""
    buffers = (b for b in machine.memory.buffers if b.name.startswith(_VARIABLE))
    return {b.name.removeprefix(_VARIABLE): b.data.copy() for b in buffers}


def changed_variables(machine: Machine, before: dict[str, np.ndarray]) -> list[str]:
    """Names of the module variables whose bytes differ from `before`."""
    now = variables_of(machine)
    return [name for name, was in before.items() if (was != now[name]).any()]


def launch_again(
    entry: str, launched: Callable[[], RunReport], args: Sequence[object], again: bool
) -> RunReport:
    """Returns the report of a launch. If `again` is set and the launch is ok, the report also
    covers a second launch on the same memory.

    Between the two launches, outputs are overwritten, so that elements that the second launch does
    not store are noticed.
    """
    if not again:
        return launched()
    arrays = {n: a.array for n, a in enumerate(args) if isinstance(a, Uninitialized)}
    before = {n: _bytes(array).copy() for n, array in arrays.items()}
    report = launched()
    if not report.ok:
        return report
    first = {n: _bytes(array).copy() for n, array in arrays.items()}
    for array in arrays.values():
        _bytes(array)[...] ^= 0xFF
    known = {finding.key for finding in report.findings}
    second = launched()
    report.findings += [f for f in second.findings if f.key not in known]
    report.errors += second.errors
    report.output += second.output
    report.instructions += second.instructions
    for n, array in arrays.items():
        now = _bytes(array)
        missing = now == first[n] ^ 0xFF
        differs = np.flatnonzero((now != first[n]) & ~(missing & (first[n] == before[n])))
        now[missing] = first[n][missing]
        if differs.size and report.ok:
            report.errors.append(_different(entry, n, array, int(differs[0]), report.left))
    return report


def _different(
    entry: str, n: int, array: np.ndarray, byte: int, left: Sequence[str]
) -> MachineError:
    index = ", ".join(str(int(i)) for i in np.unravel_index(byte // array.itemsize, array.shape))
    names = f"; the first one changed {', '.join(left)}" if left else ""
    return MachineError(
        "second-launch",
        f"a second launch of {entry} on the same memory must store what the first one stored, but "
        f"stores another value or none in argument {n}, element [{index}]: a kernel must leave its "
        "counters, flags and workspaces in the state in which it needs them, or they must be set "
        f"before every launch{names}",
    )


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
