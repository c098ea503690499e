"""tcgen05.mma (PTX ISA 9.7.16.10.9) with A in shared or in tensor memory, dense or sparse.

`[d], adesc|[a], bdesc, {[metadata],} idesc, {lane mask}?, enable-input-d, scale-input-d?`. The
forms `.ws` and `.block_scale` have their own files.
"""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.tcgen05.mma_block_scale import block_scale
from tcir.interp.ptx.isa.tcgen05.mma_ws import weight_stationary
from tcir.interp.ptx.isa.tcgen05.operands import (
    DecodedMmaOperands,
    LaneOperand,
    Predicate,
    collector,
    cta_group,
    per_thread,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Vector
from tcir.interp.ptx.warp import Warp
from tcir.machine import MmaOptions


@instruction("tcgen05.mma")
def mma(d: Decode) -> Op:
    if "ws" in d.modifiers:
        return weight_stationary(d)
    if "block_scale" in d.modifiers:
        return block_scale(d)
    sparse = d.take("sp") is not None
    group = cta_group(d)
    kind = d.require(
        "kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
        "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4",
    )[6:]  # fmt: skip
    if kind.startswith("mx"):
        raise d.malformed(f".kind::{kind} needs .block_scale")
    shifting = d.take("ashift") is not None
    buffer, use = collector(d, "a")
    d.done((6, 7, 8) if sparse else (5, 6, 7))
    operands = DecodedMmaOperands(d, sparse=sparse)
    if shifting and not operands.in_tmem:
        raise d.malformed(".ashift takes A from tensor memory only")
    if shifting and use in ("fill", "use"):
        raise d.malformed(f".collector::a::{use} cannot go with .ashift")
    rest = operands.rest
    masks: list[LaneOperand] = []
    if isinstance(rest[0], Vector):
        masks = [LaneOperand(d, o) for o in d.vector(rest.pop(0), 4 * group)]
    if not rest:
        raise d.malformed("expected the predicate enable-input-d")
    enable = Predicate(d, rest.pop(0))
    scale = d.immediate(rest.pop(0)) if rest else None
    if scale is not None and (kind == "f8f6f4" or not 0 <= scale <= 15):
        raise d.malformed("expected scale-input-d in 0..15, with .kind::f16 or .kind::tf32")
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        target, a, b, idesc = operands.read(w, lane)
        options = MmaOptions(
            enable_input_d=enable(w, lane),
            disable_lanes=tuple(x(w, lane) for x in masks) or None,
            scale_input_d=scale,
            ashift=shifting,
            metadata=operands.selectors(w, lane),
            collector=use,
            collector_buffer=buffer,
        )
        instruction = w.agent.tensor_core.instruction(idesc, kind, cta_group=group, site=site)
        w.agent.tensor_core.mma(target, a, b, instruction, options, site=site)

    return per_thread(d, issue)
