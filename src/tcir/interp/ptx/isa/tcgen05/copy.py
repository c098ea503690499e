"""tcgen05.cp and shift, which one thread issues (PTX ISA 9.7.16.9)."""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.tcgen05.operands import (
    LaneOperand,
    TmemAddress,
    cta_group,
    per_thread,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.warp import Warp
from tcir.machine import SharedDesc


@instruction("tcgen05.cp")
def cp(d: Decode) -> Op:
    group = cta_group(d)
    shape = d.require("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
    multicast = d.take("warpx2::02_13", "warpx2::01_23", "warpx4")
    source_format = d.take("b4x16_p64", "b6x16_p32")
    if (d.take("b8x16") is None) != (source_format is None):
        raise d.malformed("expected .b8x16 and one of .b4x16_p64, .b6x16_p32, or neither")
    d.done(2)
    address = TmemAddress(d, d.operands[0])
    descriptor = LaneOperand(d, d.operands[1], wide=True)
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        w.agent.tensor_core.cp(
            address(w, lane), SharedDesc(descriptor(w, lane)), shape=shape, multicast=multicast,
            decompress=source_format, cta_group=group, site=site,
        )  # fmt: skip

    return per_thread(d, issue)


@instruction("tcgen05.shift")
def shift(d: Decode) -> Op:
    group = cta_group(d)
    d.require("down")
    d.done(1)
    address = TmemAddress(d, d.operands[0])
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        w.agent.tensor_core.shift(address(w, lane), cta_group=group, site=site)

    return per_thread(d, issue)
