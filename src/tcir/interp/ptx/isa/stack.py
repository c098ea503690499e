"""alloca, stacksave and stackrestore: memory that a thread allocates while it runs (PTX ISA
9.7.18).

Each thread has some local memory for these allocations. The memory that a function allocates is
freed when the function returns.
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.lanes import LANE_INDICES, LANE_MASK
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U64, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.warp import Warp

_DEFAULT = 8  # alignment in bytes
_LARGEST = 1 << 7


@instruction("alloca")
def alloca(d: Decode) -> Op:
    """`ptr, size {, alignment}`: ptr is an address in the local state space, not a generic one."""
    kind = d.type("u32", "u64")
    d.done((2, 3))
    target, size = d.dst(d.operands[0], kind), d.src(d.operands[1], kind)
    alignment = d.immediate(d.operands[2]) if len(d.operands) == 3 else _DEFAULT
    if not 1 <= alignment <= _LARGEST or alignment & (alignment - 1):
        raise d.malformed(f"expected an alignment of 1, 2, … {_LARGEST}, got {alignment}")
    pointer, n, site = d.slots.stack_pointer(), view(kind), d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[size] & m:
            w.read_undefined(site, (size,), m)
        lanes = LANE_INDICES[m]
        at = -(-w.v[U64][pointer][lanes].astype(object) // alignment) * alignment
        end = at + w.v[n][size][lanes].astype(object)
        limit = w.local.size
        if max(end) > limit:
            raise w.error(
                "stack-overflow",
                f"expected at most {limit} bytes of local memory a thread, got {max(end)}",
                site,
            )
        w.v[n][target][lanes] = (at + w.private[lanes]).astype(w.v[n][target].dtype)
        w.v[U64][pointer][lanes] = end.astype(np.uint64)
        for lane, low, high in zip(lanes, at, end, strict=True):
            w.local.cleared((lane, slice(low, high)))
        w.undef[target] &= ~m

    return d.plain(run)


@instruction("stacksave")
def stacksave(d: Decode) -> Op:
    kind = d.type("u32", "u64")
    d.done(1)
    target, pointer, n = d.dst(d.operands[0], kind), d.slots.stack_pointer(), view(kind)

    def run(w: Warp, m: int) -> None:
        np.copyto(w.v[n][target], w.v[U64][pointer], where=LANE_MASK[m], casting="unsafe")
        w.undef[target] &= ~m

    return d.plain(run)


@instruction("stackrestore")
def stackrestore(d: Decode) -> Op:
    """Restores the stack pointer. The value must come from stacksave: it must be inside the
    thread's memory, and not above the part in use.
    """
    kind = d.type("u32", "u64")
    d.done(1)
    source, pointer, n = d.src(d.operands[0], kind), d.slots.stack_pointer(), view(kind)
    base, site = d.slots.stack, d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[source] & m:
            w.read_undefined(site, (source,), m)
        lanes = LANE_INDICES[m]
        values = w.v[n][source][lanes].astype(np.uint64)
        if (values < base).any() or (values > w.v[U64][pointer][lanes]).any():
            raise w.error(
                "stack-restore", f"expected a result of stacksave, got {int(values[0]):#x}", site
            )
        w.v[U64][pointer][lanes] = values

    return d.plain(run)
