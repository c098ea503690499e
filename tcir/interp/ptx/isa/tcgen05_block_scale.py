"""tcgen05.mma ... .block_scale (PTX ISA 9.7.16.10.9.1).

`[d], adesc|[a], bdesc, idesc, [sfa], [sfb], enable-input-d`; no lane mask, scale-input-d, .ashift.
"""

from __future__ import annotations

from typing import Any

from tcir.interp.ptx.decode import Decode, Op
from tcir.interp.ptx.isa.tcgen05 import MMA_FORMS, _group, _Lane, _per_thread, _TmemAddress
from tcir.interp.ptx.syntax import Address
from tcir.interp.ptx.warp import Warp
from tcir.machine import SharedDesc, TmemAddr
from tcir.machine.instruction_descriptor_scaled import scales_per_row
from tcir.machine.refusal import Refusal


def _scales(d: Decode, kind: str) -> int:
    """Scales per row that `.scale_vec::nX` or `.blockN` names."""
    vector = d.take("scale_vec::1X", "scale_vec::2X", "scale_vec::4X")
    block = d.take("block16", "block32")
    if vector and block:
        raise d.malformed(f"expected one of .{vector} and .{block}, got both")
    try:
        return scales_per_row(kind, int(vector[-2]) if vector else None,
                              int(block[5:]) if block else None)  # fmt: skip
    except Refusal as refusal:
        raise d.malformed(str(refusal)) from None


def block_scale(d: Decode) -> Op:
    """The form with scale factors in tensor memory."""
    d.require("block_scale")
    group = _group(d)
    kind = d.require(
        "kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
        "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4",
    )[6:]  # fmt: skip
    scales = _scales(d, kind)
    d.take(*(f"collector::a::{use}" for use in ("fill", "use", "lastuse", "discard")))
    if "ashift" in d.modifiers:
        raise d.malformed(".ashift cannot go with .block_scale")
    d.done(7)
    target = _TmemAddress(d, d.operands[0])
    in_tmem = isinstance(d.operands[1], Address)
    a: Any = _TmemAddress(d, d.operands[1]) if in_tmem else _Lane(d, d.operands[1], wide=True)
    b, idesc = _Lane(d, d.operands[2], wide=True), _Lane(d, d.operands[3])
    sfa, sfb = _TmemAddress(d, d.operands[4]), _TmemAddress(d, d.operands[5])
    enable, flip = d.pred(d.operands[6])
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        if w.undef[enable] & 1 << lane:
            w.read_undefined(site, (enable,), 1 << lane)
        value = a(w, lane)
        w.agent.mma_block_scale(
            target(w, lane),
            TmemAddr(value) if in_tmem else SharedDesc(value),
            b(w, lane),
            idesc(w, lane),
            sfa(w, lane),
            sfb(w, lane),
            kind,
            scales=scales,
            enable_input_d=bool((w.p[enable] ^ flip) >> lane & 1),
            cta_group=group,
            site=site,
        )

    return _per_thread(d, issue)


MMA_FORMS["block_scale"] = block_scale
