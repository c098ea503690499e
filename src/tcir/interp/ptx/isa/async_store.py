"""st.async, red.async, st.bulk (PTX ISA 9.7.9.12, 9.7.13.8, 9.7.9.13)."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.atomic import OPERATIONS, Combine, combination
from tcir.interp.ptx.isa.atomic import red as reduce_now
from tcir.interp.ptx.isa.mbarrier import shared_operand
from tcir.interp.ptx.isa.memory import (
    AccessTarget,
    addresses,
    check_aligned,
    store,
    stored,
    take_space,
)
from tcir.interp.ptx.isa.memory import st as store_now
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U64, VIEW_DTYPES, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Type
from tcir.interp.ptx.threads import one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.reduction import Reduction

_COMPLETE = "mbarrier::complete_tx::bytes"
_MAX_BULK = 16777216


def _asynchronous(d: Decode, combine: Combine | None, kind: Type, count: int) -> Op:
    """`[addr], value or vector, [mbar]`; both addresses in one CTA of the cluster."""
    spaced = d.take("shared::cluster") is not None
    if d.take(_COMPLETE) is None:
        raise d.malformed(f"expected .{_COMPLETE}")
    d.done(3)
    target, barrier = (shared_operand(d, d.operands[n], spaced) for n in (0, 2))
    n = unsigned_view(kind.size)
    sources = tuple(d.src(o, kind) for o in d.vector(d.operands[1], count))
    reduction = None if combine is None else Reduction(combine, VIEW_DTYPES[view(kind)])
    site = d.site

    def run(w: Warp, m: int) -> None:
        if reduction is not None:
            w.read_undefined(site, sources, m)
        lanes, undefined = LANE_INDICES[m], stored(w, sources, kind.size, m, site)
        values = np.stack([w.v[n][s][lanes] for s in sources], axis=1).view(np.uint8)
        rows = zip(target(w, m), range(len(lanes)), barrier(w, m), strict=True)
        for at, number, mbar in one_by_one(w, m, rows):
            lost = undefined and undefined.of(number)
            w.agent.st_async.store(at, values[number], mbar, reduction, undefined=lost, site=site)

    return d.plain(run)


def _require_release(d: Decode) -> None:
    if not {"release", "sys"} <= set(d.modifiers):
        raise d.malformed("expected .release.sys with .mmio")


@instruction("st.async")
def store_async(d: Decode) -> Op:
    """Decodes st.async, which completes on an mbarrier. The form .mmio.release is a strong store
    that may take effect late.
    """
    if "mmio" in d.modifiers:
        _require_release(d)
        return store_now(d)
    d.skip("weak")
    word = d.take("v2", "v4")
    kind = d.type(*(f"{k}{n}" for k in "bus" for n in (32, 64)), "f32", "f64")
    count = int(word[1:]) if word else 1
    if kind.size * count > 16:
        raise d.malformed(f"expected at most 16 bytes, got {kind.size * count}")
    return _asynchronous(d, None, kind, count)


@instruction("red.async")
def reduce_async(d: Decode) -> Op:
    """Decodes red.async, a reduction of integers that completes on an mbarrier. The form
    .mmio.release is a strong reduction without an mbarrier.
    """
    if d.take("mmio"):
        _require_release(d)
        return reduce_now(d)
    d.skip("relaxed", "cluster")
    name = d.require(*(n for n in OPERATIONS if n != "exch"))
    kind = d.type("b32", "u32", "s32", "u64", "s64")
    if kind.size == 8 and name != "add":
        raise d.malformed(f".{name} does not go with .{kind.name}")
    return _asynchronous(d, combination(d, name, kind), kind, 1)


@instruction("st.bulk")
def fill(d: Decode) -> Op:
    """`[addr], size, 0`: writes zeros to this CTA's shared memory; size is a multiple of 8
    bytes.
    """
    d.skip("weak")
    named = take_space(d)
    d.done(3)
    if d.immediate(d.operands[2]) != 0:
        raise d.malformed(f"expected 0 as the value, got {d.immediate(d.operands[2])}")
    place = AccessTarget.of(d, d.operands[0], named)
    u64 = TYPES["u64"]
    count = d.src(d.operands[1], u64)
    site = d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[count] & m:
            w.read_undefined(site, (count,), m)
        at = addresses(w, place, m, site)
        check_aligned(w, at, 8, site)
        lanes = LANE_INDICES[m]
        for n, nbytes in enumerate(w.v[U64][count][lanes].tolist()):
            if nbytes % 8 or nbytes > _MAX_BULK:
                raise w.error(
                    "bulk-size",
                    f"expected a multiple of 8 up to {_MAX_BULK} bytes, got {nbytes}",
                    site,
                )
            if nbytes:
                zeros = np.zeros((1, nbytes), np.uint8)
                store(w, place.space, at[n : n + 1], zeros, lanes[n : n + 1], site)

    return d.plain(run)
