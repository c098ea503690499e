"""tcgen05.commit and fence (PTX ISA 9.7.16.11, 9.7.16.12)."""

from __future__ import annotations

from dataclasses import replace

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.mbarrier import MULTICAST, shared_addresses
from tcir.interp.ptx.isa.memory import AccessTarget, addresses
from tcir.interp.ptx.isa.tcgen05.operands import (
    cta_group,
    per_thread,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U16
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.unpromised import COMMIT_ADDRESS


@instruction("tcgen05.commit")
def commit(d: Decode) -> Op:
    group = cta_group(d)
    d.require("mbarrier::arrive::one")
    spaced = d.take("shared::cluster") is not None
    multicast = d.take(*MULTICAST) is not None
    d.require("b64")
    d.done(2 if multicast else 1)
    place = AccessTarget.of(d, d.operands[0], "shared" if spaced else "generic")
    mask = d.src(d.operands[1], TYPES["u16"]) if multicast else None
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        if mask is not None and w.undef[mask] & 1 << lane:
            w.read_undefined(site, (mask,), 1 << lane)
        w.agent.tensor_core.commit(
            _address(w, place, 1 << lane, site),
            cta_mask=None if mask is None else int(w.v[U16][mask][lane]),
            cta_group=group,
            site=site,
        )

    return per_thread(d, issue)


def _address(w: Warp, place: AccessTarget, m: int, site: Site) -> int:
    """Address of the mbarrier. The hardware takes the low half of a generic address, which also
    fits an address in shared memory (ptxas: UTCBAR)."""
    if place.space == "generic" and not int(addresses(w, place, m, site)[0]) >> 32:
        w.agent.cta.report(
            COMMIT_ADDRESS,
            "commit-address",
            site,
            "",
            "a generic address, or .shared::cluster for this one",
        )
        place = replace(place, space="shared")
    return shared_addresses(w, place, m, site)[0]


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def fence(d: Decode) -> Op:
    d.done(0)
    kind = "tcgen05.before" if "before" in d.name else "tcgen05.after"
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.fence(kind, site=site)

    return d.plain(run)
