"""tcgen05.commit and fence (PTX ISA 9.7.16.11, 9.7.16.12)."""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.mbarrier import MULTICAST, shared_operand
from tcir.interp.ptx.isa.tcgen05.operands import (
    cta_group,
    per_thread,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U16
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp


@instruction("tcgen05.commit")
def commit(d: Decode) -> Op:
    group = cta_group(d)
    d.require("mbarrier::arrive::one")
    spaced = d.take("shared::cluster") is not None
    multicast = d.take(*MULTICAST) is not None
    d.require("b64")
    d.done(2 if multicast else 1)
    at = shared_operand(d, d.operands[0], spaced)
    mask = d.src(d.operands[1], TYPES["u16"]) if multicast else None
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        if mask is not None and w.undef[mask] & 1 << lane:
            w.read_undefined(site, (mask,), 1 << lane)
        w.agent.tensor_core.commit(
            at(w, 1 << lane)[0],
            cta_mask=None if mask is None else int(w.v[U16][mask][lane]),
            cta_group=group,
            site=site,
        )

    return per_thread(d, issue)


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def fence(d: Decode) -> Op:
    d.done(0)
    kind = "tcgen05.before" if "before" in d.name else "tcgen05.after"
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.fence(kind, site=site)

    return d.plain(run)
