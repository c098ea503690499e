"""Instructions without an effect on results: hints, prefetches, cache policies."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import AccessTarget, addresses, check_aligned, split
from tcir.interp.ptx.lanes import LANE_INDICES, LANE_MASK
from tcir.interp.ptx.op import Op, no_effect
from tcir.interp.ptx.registers import U32, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp


@instruction("nanosleep")
def nanosleep(d: Decode) -> Op:
    """Has no effect: time is not modelled."""
    d.skip("u32")
    d.done(1)
    d.src(d.operands[0], TYPES["u32"])
    return d.plain(no_effect)


_EVICTIONS = ("L2::evict_last", "L2::evict_normal")


@instruction("prefetch", "prefetchu")
def prefetch(d: Decode) -> Op:
    """Has no effect: caches are not modelled, and prefetching an unmapped address is not a
    fault.
    """
    if d.name == "prefetchu":
        d.require("L1")
    else:
        space = d.take("global", "local")
        d.require("L1", "L2", *(_EVICTIONS if space != "local" else ()))
    d.done(1)
    d.address(d.operands[0])
    return d.plain(no_effect)


_LINE = 128


@instruction("applypriority", "discard")
def line(d: Decode) -> Op:
    """`[a], 128`: a hint for one cache line of L2. `discard` also makes the line's bytes
    undefined.
    """
    d.skip("global")
    d.require("L2::evict_normal" if d.name == "applypriority" else "L2")
    d.done(2)
    if d.immediate(d.operands[1]) != _LINE:
        raise d.malformed(f"expected a size of {_LINE}, got {d.immediate(d.operands[1])}")
    place = AccessTarget.of(d, d.operands[0], "generic")
    site, drops = d.site, d.name == "discard"

    def run(w: Warp, m: int) -> None:
        at = addresses(w, place, m, site)
        check_aligned(w, at, _LINE, site)
        if any(space != "global" for space, _, _ in split(at)):
            raise w.error("not-global", f"expected a global address, got {int(at[0]):#x}", site)
        for address in at.tolist() if drops else ():
            w.agent.memory.discard(address, _LINE, site=site)

    return d.plain(run)


@instruction("cp.async.bulk.prefetch")
def bulk_prefetch(d: Decode) -> Op:
    """`.L2.global [src], size {, policy}`: has no effect; the memory need not exist."""
    d.require("L2")
    d.require("global")
    policy = d.take("L2::cache_hint") is not None
    d.done(2 + policy)
    place = AccessTarget.of(d, d.operands[0], "global")
    count, site = d.src(d.operands[1], TYPES["u32"]), d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[count] & m:
            w.read_undefined(site, (count,), m)
        check_aligned(w, addresses(w, place, m, site), 16, site)
        check_aligned(w, w.v[U32][count][LANE_INDICES[m]], 16, site)

    return d.plain(run)


_PRIMARY = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")


@instruction("createpolicy.fractional", "createpolicy.range", "createpolicy.cvt.L2")
def createpolicy(d: Decode) -> Op:
    """Creates an opaque cache policy, which is 0 here because caches are not modelled."""
    d.require("b64")
    ranged = d.name == "createpolicy.range"
    if ranged:
        d.skip("global")
    if d.name != "createpolicy.cvt.L2":
        d.require(*_PRIMARY)
        d.take("L2::evict_first", "L2::evict_unchanged")
    d.done(4 if ranged else 2 if d.name.endswith("cvt.L2") else (1, 2))
    b64 = TYPES["b64"]
    dst = d.dst(d.operands[0], b64)
    n = view(b64)

    def run(w: Warp, m: int) -> None:
        np.copyto(w.v[n][dst], np.uint64(0), where=LANE_MASK[m])
        w.undef[dst] &= ~m

    return d.plain(run)
