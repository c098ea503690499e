"""tcgen05.mma.ws: M is 32, 64 or 128, and B may be kept in a collector buffer (PTX ISA
9.7.16.10.9.3).

`[d], adesc|[a], bdesc, {[metadata],} idesc, enable-input-d, zero-column-mask-desc?`.
"""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.tcgen05.operands import (
    DecodedMmaOperands,
    LaneOperand,
    Predicate,
    collector,
    per_thread,
)
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.warp import Warp
from tcir.machine import MmaOptions


def weight_stationary(d: Decode) -> Op:
    """Decodes tcgen05.mma.ws, dense or sparse; it is executed by one CTA."""
    d.require("ws")
    sparse = d.take("sp") is not None
    if "cta_group::2" in d.modifiers:
        raise d.malformed(".ws goes with .cta_group::1 only")
    d.require("cta_group::1")
    kind = d.require("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8")[6:]
    buffer, use = collector(d, "b0", "b1", "b2", "b3")
    d.done((6, 7) if sparse else (5, 6))
    operands = DecodedMmaOperands(d, sparse=sparse)
    enable = Predicate(d, operands.rest[0])
    zeros = LaneOperand(d, operands.rest[1], wide=True) if len(operands.rest) == 2 else None
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        target, a, b, idesc = operands.read(w, lane)
        options = MmaOptions(
            enable_input_d=enable(w, lane),
            metadata=operands.selectors(w, lane),
            zero_columns=None if zeros is None else zeros(w, lane),
            collector=use,
            collector_buffer=buffer,
        )
        instruction = w.agent.tensor_core.instruction(idesc, kind, ws=True, site=site)
        w.agent.tensor_core.mma(target, a, b, instruction, options, site=site)

    return per_thread(d, issue)
