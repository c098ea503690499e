"""Instructions without an effect on results: hints, prefetches, policies, register counts."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode, Op, rule, view
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import BOOLS, Warp


def nothing(w: Warp, m: int) -> None:
    """No effect."""


@rule(
    "nanosleep",
    "prefetch",
    "prefetchu",
    "applypriority",
    "discard",
    "cp.async.bulk.prefetch",
    "griddepcontrol.launch_dependents",
    "griddepcontrol.wait",
)
def hint(d: Decode) -> Op:
    """Time and caches are not modelled; a grid that runs alone never waits for another."""
    return d.plain(nothing)


@rule("setmaxnreg.inc.sync.aligned", "setmaxnreg.dec.sync.aligned")
def setmaxnreg(d: Decode) -> Op:
    """Registers per thread are unlimited here; count rules are those of the ISA."""
    d.skip("u32")
    d.done(1)
    count = d.immediate(d.operands[0])
    if not 24 <= count <= 256 or count % 8:
        raise d.malformed(f"expected 24..256 registers in steps of 8, got {count}")
    return d.plain(nothing, converge="aligned")


@rule("createpolicy")
def createpolicy(d: Decode) -> Op:
    """An opaque cache policy: 0 here, since caches are not modelled."""
    b64 = TYPES["b64"]
    dst = d.dst(d.operands[0], b64)
    n = view(b64)

    def run(w: Warp, m: int) -> None:
        np.copyto(w.v[n][dst], np.uint64(0), where=BOOLS[m])
        w.undef[dst] &= ~m

    return d.plain(run)
