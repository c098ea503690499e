"""cp.async.bulk and cp.reduce.async.bulk without a tensor map (PTX ISA 9.7.9.25.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.interp.ptx.decode import VIEW_DTYPES, Decode, Op, rule, view
from tcir.interp.ptx.isa.atomic import OPERATIONS, combination
from tcir.interp.ptx.isa.mbarrier import shared_operand
from tcir.interp.ptx.isa.memory import addresses, split
from tcir.interp.ptx.syntax import TYPES, Operand
from tcir.interp.ptx.warp import LANES, Warp
from tcir.machine.bulk_copy import bulk_load, bulk_store

_U32, _U16 = TYPES["u32"], TYPES["u16"]
_COMPLETE = "mbarrier::complete_tx::bytes"


def _global(d: Decode, operand: Operand) -> Any:
    """Function (warp, mask) → global addresses; generic ones have to point there."""
    slot, size, offset, _ = d.address(operand)
    site = d.site

    def at(w: Warp, m: int) -> list[int]:
        found = addresses(w, slot, size, offset, m, site)
        if any(space != "global" for space, _, _ in split(found)):
            raise w.error("not-global", f"expected a global address, got {int(found[0]):#x}", site)
        return [int(a) for a in found]

    return at


def _values(d: Decode, operand: Operand, kind: Any) -> Any:
    slot = d.src(operand, kind)
    n, site = view(kind), d.site

    def at(w: Warp, m: int) -> list[int]:
        if w.undef[slot] & m:
            w.read_undefined(site, (slot,), m)
        return [int(v) for v in w.v[n][slot][LANES[m]]]

    return at


@rule(
    "cp.async.bulk.shared::cluster.global",
    "cp.async.bulk.shared::cta.global",
    "cp.async.bulk.shared::cluster.shared::cta",
)
def load(d: Decode) -> Op:
    """`[dst], [src], size, [mbar] {, policy}`"""
    from_shared = d.name.endswith(".shared::cta")
    policy = d.take("L2::cache_hint") is not None
    if d.take(_COMPLETE) is None:
        raise d.malformed(f"expected .{_COMPLETE}")
    d.done(5 if policy else 4)
    target = shared_operand(d, d.operands[0], True)
    source = shared_operand(d, d.operands[1], True) if from_shared else _global(d, d.operands[1])
    size, barrier = _values(d, d.operands[2], _U32), shared_operand(d, d.operands[3], True)
    space, site = "shared" if from_shared else "global", d.site

    def run(w: Warp, m: int) -> None:
        rows = zip(target(w, m), source(w, m), size(w, m), barrier(w, m), strict=True)
        for to, at, nbytes, mbar in rows:
            bulk_load(w.agent, to, space, at, nbytes, mbar, site=site)

    return d.plain(run)


@rule("cp.async.bulk.global.shared::cta")
def store(d: Decode) -> Op:
    """`[dst], [src], size {, policy} {, byte mask}`"""
    policy = d.take("L2::cache_hint") is not None
    masked = d.take("cp_mask") is not None
    d.require("bulk_group")
    d.done(3 + policy + masked)
    target, source = _global(d, d.operands[0]), shared_operand(d, d.operands[1], True)
    size = _values(d, d.operands[2], _U32)
    masks = _values(d, d.operands[-1], _U16) if masked else None
    site = d.site

    def run(w: Warp, m: int) -> None:
        chosen = masks(w, m) if masks is not None else [0xFFFF] * m.bit_count()
        rows = zip(target(w, m), source(w, m), size(w, m), chosen, strict=True)
        for to, at, nbytes, mask in rows:
            bulk_store(w.agent, to, at, nbytes, byte_mask=mask, site=site)

    return d.plain(run)


@rule("cp.reduce.async.bulk.global.shared::cta")
def reduce(d: Decode) -> Op:
    """`[dst], [src], size {, policy}`: element by element, in any order."""
    policy = d.take("L2::cache_hint") is not None
    d.require("bulk_group")
    d.skip("noftz")
    name = d.require(*(n for n in OPERATIONS if n != "exch"))
    kind = d.type("f16", "bf16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
    d.done(3 + policy)
    combine = combination(d, name, kind)
    dtype = VIEW_DTYPES[view(f"u{8 * kind.size}") if kind.kind == "f" else view(kind)]
    target, source = _global(d, d.operands[0]), shared_operand(d, d.operands[1], True)
    size, site = _values(d, d.operands[2], _U32), d.site

    def run(w: Warp, m: int) -> None:
        for to, at, nbytes in zip(target(w, m), source(w, m), size(w, m), strict=True):
            bulk_store(w.agent, to, at, nbytes, combine=combine, dtype=np.dtype(dtype), site=site)

    return d.plain(run)
