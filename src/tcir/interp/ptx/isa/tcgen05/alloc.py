"""tcgen05.alloc, dealloc, relinquish_alloc_permit: collective (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.mbarrier import shared_operand
from tcir.interp.ptx.isa.sync import uniform
from tcir.interp.ptx.isa.tcgen05.operands import (
    collective,
    cta_group,
)
from tcir.interp.ptx.op import Blocking, Op
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp

_U32_TYPE = TYPES["u32"]


@instruction("tcgen05.alloc")
def alloc(d: Decode) -> Op:
    group = cta_group(d)
    collective(d)
    exclusive = d.take("exclusive") is not None
    spaced = d.take("shared", "shared::cta") is not None
    d.require("b32")
    d.done(2)
    at = shared_operand(d, d.operands[0], spaced)
    columns = d.src(d.operands[1], _U32_TYPE)
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        count = uniform(w, columns, m, site, "column count")
        where = at(w, m)[0]
        yield from w.agent.tmem.alloc(where, count, cta_group=group, exclusive=exclusive, site=site)

    return d.blocking(run, aligned=True)


@instruction("tcgen05.dealloc")
def dealloc(d: Decode) -> Op:
    group = cta_group(d)
    collective(d)
    exclusive = d.take("exclusive") is not None
    d.require("b32")
    d.done(2)
    base, columns = d.src(d.operands[0], _U32_TYPE), d.src(d.operands[1], _U32_TYPE)
    site = d.site

    def run(w: Warp, m: int) -> None:
        address = uniform(w, base, m, site, "tensor-memory address")
        count = uniform(w, columns, m, site, "column count")
        w.agent.tmem.dealloc(address, count, cta_group=1, exclusive=exclusive, site=site)

    def of_pair(w: Warp, m: int) -> Blocking:
        address = uniform(w, base, m, site, "tensor-memory address")
        count = uniform(w, columns, m, site, "column count")
        yield from w.agent.tmem.pair_dealloc(address, count, exclusive, site=site)

    if group == 2:
        return d.blocking(of_pair, aligned=True)
    return d.plain(run, aligned=True)


@instruction("tcgen05.relinquish_alloc_permit")
def relinquish(d: Decode) -> Op:
    group = cta_group(d)
    collective(d)
    d.done(0)
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.tmem.relinquish(cta_group=group, site=site)

    return d.plain(run, aligned=True)
