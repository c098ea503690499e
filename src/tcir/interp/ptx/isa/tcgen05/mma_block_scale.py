"""tcgen05.mma ... .block_scale (PTX ISA 9.7.16.10.9.1).

`[d], adesc|[a], bdesc, {[metadata],} idesc, [sfa], [sfb], enable-input-d`. This form has no lane
mask, no scale-input-d and no .ashift.
"""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.tcgen05.operands import (
    DecodedMmaOperands,
    Predicate,
    TmemAddress,
    collector,
    cta_group,
    per_thread,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.warp import Warp
from tcir.machine import MmaOptions
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.instruction_descriptor_scaled import scales_per_row


def _scales(d: Decode, kind: str) -> int:
    """Scales per row that `.scale_vec::nX` or `.blockN` names."""
    vector = d.take("scale_vec::1X", "scale_vec::2X", "scale_vec::4X")
    block = d.take("block16", "block32")
    if vector and block:
        raise d.malformed(f"expected one of .{vector} and .{block}, got both")
    try:
        return scales_per_row(
            kind, int(vector[-2]) if vector else None, int(block[5:]) if block else None
        )
    except Refusal as refusal:
        raise d.malformed(str(refusal)) from None


def block_scale(d: Decode) -> Op:
    """Decodes the form of tcgen05.mma that has scale factors in tensor memory."""
    d.require("block_scale")
    sparse = d.take("sp") is not None
    group = cta_group(d)
    kind = d.require(
        "kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
        "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4",
    )[6:]  # fmt: skip
    scales = _scales(d, kind)
    buffer, use = collector(d, "a")
    if "ashift" in d.modifiers:
        raise d.malformed(".ashift cannot go with .block_scale")
    d.done(8 if sparse else 7)
    operands = DecodedMmaOperands(d, sparse=sparse)
    sfa, sfb = TmemAddress(d, operands.rest[0]), TmemAddress(d, operands.rest[1])
    enable = Predicate(d, operands.rest[2])
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        target, a, b, idesc = operands.read(w, lane)
        at = sfa(w, lane), sfb(w, lane)
        options = MmaOptions(
            enable(w, lane),
            metadata=operands.selectors(w, lane),
            collector=use,
            collector_buffer=buffer,
        )
        instruction = w.agent.tensor_core.scaled_instruction(
            idesc, kind, scales, cta_group=group, site=site
        )
        w.agent.tensor_core.mma_block_scale(target, a, b, instruction, *at, options, site=site)

    return per_thread(d, issue)
