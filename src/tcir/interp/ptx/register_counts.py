"""Number of registers per thread at the entry of a kernel with setmaxnreg, as ptxas allocates
them.
"""

from __future__ import annotations

from tcir.interp.ptx.syntax import Function, Imm

SM_REGISTERS = 65536
MOST = 255
"""Most registers of a thread (CUDA C++ Programming Guide, compute capabilities)."""
_GRANULE = 8


def at_entry(function: Function) -> int | None:
    """Registers per thread at entry; None if ptxas cannot determine the number and ignores
    setmaxnreg (warning C7508).

    The limit is .maxnreg, or follows from .minnctapersm with .maxntid or .reqntid. The kernel gets
    as many registers as the limit, but no more than its largest setmaxnreg.inc. This rule was
    derived from cubins of ptxas 13.5.
    """
    caps = [cap for cap in (function.maxnreg, _of_residents(function)) if cap is not None]
    if not caps:
        return None
    taken = [
        int(each.operands[0].value)
        for each in function.body or ()
        if each.mnemonic.startswith("setmaxnreg.inc") and isinstance(each.operands[0], Imm)
    ]
    return min(*caps, MOST, max(taken, default=MOST))


def allocated(function: Function) -> int:
    """Registers per thread that a kernel with setmaxnreg is launched with; 0 for other kernels."""
    shares = any(each.mnemonic.startswith("setmaxnreg") for each in function.body or ())
    return -(-(at_entry(function) or 0) // _GRANULE) * _GRANULE if shares else 0


def _of_residents(function: Function) -> int | None:
    threads = function.maxntid
    if function.reqntid is not None:
        x, y, z = function.reqntid
        threads = x * y * z
    if threads is None or function.minnctapersm is None:
        return None
    warps = -(-threads // 32) * function.minnctapersm
    return SM_REGISTERS // (32 * warps) // _GRANULE * _GRANULE
