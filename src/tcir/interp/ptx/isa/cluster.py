"""Clusters: their barrier, and the CTA to which an address belongs (PTX ISA 9.7.13.4, 9.7.9).

Shared addresses have the rank of their CTA in bits 24 and up, see `tcir.machine.engine.cluster`.
`mapa` is in `move`.
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import mixed
from tcir.interp.ptx.isa.values.elementwise import elementwise
from tcir.interp.ptx.lanes import bits
from tcir.interp.ptx.op import WAIT, Blocking, Op
from tcir.interp.ptx.registers import U32, U64, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp
from tcir.interp.ptx.windows import SHARED
from tcir.machine.memory.memories import RANK_SHIFT


@instruction("barrier.cluster.arrive")
def arrive(d: Decode) -> Op:
    """barrier.cluster.arrive: with .aligned all live lanes of the warp arrive together, without it
    each lane arrives by itself.
    """
    aligned = d.take("aligned") is not None
    relaxed = d.take("release", "relaxed") == "relaxed"
    d.done(0)
    site = d.site

    def run(w: Warp, m: int) -> None:
        again = m & (w.arrived | w.waiting)
        if again:
            raise w.error(
                "cluster-barrier-order",
                "expected barrier.cluster.wait between two barrier.cluster.arrive of a thread, got "
                f"none in lanes {again:#010x}",
                site,
            )
        w.arrived |= m
        w.arrival = relaxed, site
        w.complete_arrival()

    return d.plain(run, aligned=aligned)


@instruction("barrier.cluster.wait")
def wait(d: Decode) -> Op:
    aligned = d.take("aligned") is not None
    d.skip("acquire")
    d.done(0)
    site = d.site

    def check(w: Warp, m: int) -> None:
        early = m & ~(w.arrived | w.waiting)
        if early:
            raise w.error(
                "cluster-barrier-order",
                "expected barrier.cluster.arrive before barrier.cluster.wait, got none in lanes "
                f"{early:#010x}",
                site,
            )

    def together(w: Warp, m: int) -> Blocking:
        check(w, m)
        yield from w.agent.cluster_barrier.wait(site=site)
        w.waiting = 0

    def apart(w: Warp, m: int) -> bool:
        check(w, m)
        if m & w.arrived:
            w.agent.polls = f"lanes {w.live & ~w.arrived:#010x} at the cluster barrier at {site}"
            return False
        if not w.agent.cluster_barrier.test(last=not w.waiting & w.live & ~m, site=site):
            return False
        w.waiting &= ~m
        return True

    return d.blocking(together, aligned=True) if aligned else d.op(WAIT, apart)


@instruction("getctarank")
def getctarank(d: Decode) -> Op:
    """Rank of the CTA in whose shared memory an address lies."""
    shared = d.take("shared::cluster") is not None
    kind = d.type("u32", "u64")
    d.done(2)
    if not shared and kind.size == 4:
        raise d.malformed("expected .u64 for generic addresses")
    n = view(kind)

    def run(a: np.ndarray) -> np.ndarray:
        return (a >> np.array(RANK_SHIFT, a.dtype)).astype(np.uint32) & np.uint32(0xFF)

    return elementwise(
        d, run, d.dst(d.operands[0], TYPES["u32"]), U32, (d.src(d.operands[1], kind),), (n,)
    )


@instruction("isspacep.shared", "isspacep.shared::cta")
def isspacep(d: Decode) -> Op:
    """Decodes isspacep.shared: whether generic addresses lie in this CTA's own shared memory."""
    d.done(2)
    source, dst = d.src(d.operands[1], TYPES["u64"]), d.pred_dst(d.operands[0])
    tag, site = np.uint64(SHARED >> RANK_SHIFT), d.site

    def run(w: Warp, m: int) -> None:
        own = w.v[U64][source] >> np.uint64(RANK_SHIFT) == tag + np.uint64(
            w.agent.cta.rank_in_cluster
        )
        w.p[dst] = w.p[dst] & ~m | bits(own) & m
        w.define(dst, m, w.result((source,), m, site, mixed(1)))

    return d.computing(run)
