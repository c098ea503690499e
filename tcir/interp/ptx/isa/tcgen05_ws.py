"""tcgen05.mma.ws: M of 32, 64 or 128, with a buffer for B (PTX ISA 9.7.16.10.9.3).

`[d], adesc|[a], bdesc, idesc, enable-input-d, zero-column-mask-desc?`. Which buffer is used changes
no result. A descriptor of zero columns that is not 0 is named as not modelled: PTX's words and its
example disagree on which of the two spans it zeroes.
"""

from __future__ import annotations

from typing import Any

from tcir.interp.ptx.decode import Decode, Op
from tcir.interp.ptx.isa.tcgen05 import MMA_FORMS, _Lane, _per_thread, _TmemAddress
from tcir.interp.ptx.syntax import Address
from tcir.interp.ptx.warp import Warp
from tcir.machine import NotModelled, SharedDesc, TmemAddr

_COLLECTORS = tuple(
    f"collector::b{n}::{use}" for n in range(4) for use in ("fill", "use", "lastuse", "discard")
)


def weight_stationary(d: Decode) -> Op:
    """The dense form without a mask of zero columns."""
    d.require("ws")
    if "sp" in d.modifiers:
        raise d.incomplete("no rule for modifier .sp")
    if "cta_group::2" in d.modifiers:
        raise d.malformed(".ws goes with .cta_group::1 only")
    d.require("cta_group::1")
    kind = d.require("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8")[6:]
    d.take(*_COLLECTORS)
    d.done((5, 6))
    mask = _Lane(d, d.operands[5], wide=True) if len(d.operands) == 6 else None
    target = _TmemAddress(d, d.operands[0])
    in_tmem = isinstance(d.operands[1], Address)
    a: Any = _TmemAddress(d, d.operands[1]) if in_tmem else _Lane(d, d.operands[1], wide=True)
    b, idesc = _Lane(d, d.operands[2], wide=True), _Lane(d, d.operands[3])
    enable, flip = d.pred(d.operands[4])
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        if w.undef[enable] & 1 << lane:
            w.read_undefined(site, (enable,), 1 << lane)
        if mask is not None and mask(w, lane):
            raise NotModelled("a mask of zero columns (.ws)", site=site)
        value = a(w, lane)
        w.agent.mma(
            target(w, lane),
            TmemAddr(value) if in_tmem else SharedDesc(value),
            b(w, lane),
            idesc(w, lane),
            kind=kind,
            enable_input_d=bool((w.p[enable] ^ flip) >> lane & 1),
            ws=True,
            site=site,
        )

    return _per_thread(d, issue)


MMA_FORMS["ws"] = weight_stationary
