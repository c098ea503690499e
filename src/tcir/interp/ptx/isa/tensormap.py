"""Changes of tensor maps by the kernel (PTX ISA 9.7.9.28 "tensormap.replace", 9.7.13.16)."""

from __future__ import annotations

from collections.abc import Callable

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import AccessTarget, addresses, split
from tcir.interp.ptx.isa.sync import uniform
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Operand
from tcir.interp.ptx.threads import one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine.tma.tensor_encoding import LIMITS, MAP_BYTES

_ORDINAL = ("box_dim", "global_dim", "global_stride", "element_stride")
_SCOPES = ("cta", "cluster", "gpu", "sys")


def _place(
    d: Decode, operand: Operand, space: str | None
) -> Callable[[Warp, int], list[tuple[str, int]]]:
    """Function (warp, mask) -> (space, address) of every active lane."""
    place, site = AccessTarget.of(d, operand, space or "generic"), d.site

    def at(w: Warp, m: int) -> list[tuple[str, int]]:
        found = addresses(w, place, m, site)
        if place.space != "generic":
            return [(place.space, int(a)) for a in found]
        out = []
        for position in range(len(found)):
            where, _, inside = split(found[position : position + 1])[0]
            out.append((where, int(inside[0])))
        return out

    return at


@instruction("tensormap.replace.tile")
def replace(d: Decode) -> Op:
    """`[map] {, ordinal}, new value`: changes a field of the map through the generic proxy."""
    field = d.require(*LIMITS)
    space = d.take("global", "shared::cta", "shared")
    d.require("b1024")
    kind = d.type("b32", "b64")
    ordinal = d.immediate(d.operands[1]) if field in _ORDINAL and len(d.operands) == 3 else 0
    d.done(3 if field in _ORDINAL else 2)
    at = _place(d, d.operands[0], {"shared::cta": "shared"}.get(space or "", space))
    value = d.src(d.operands[-1], kind)
    n, site = view(kind), d.site

    def run(w: Warp, m: int) -> None:
        if w.undef[value] & m:
            w.read_undefined(site, (value,), m)
        values = w.v[n][value][LANE_INDICES[m]]
        rows = zip(at(w, m), values.tolist(), strict=True)
        for (where, address), new in one_by_one(w, m, rows):
            w.agent.tensormap.replace(where, address, field, new, ordinal, site=site)

    return d.plain(run)


@instruction("tensormap.cp_fenceproxy")
def copy_release(d: Decode) -> Op:
    """`[global], [shared], 128`, executed by a whole warp: copies the map, and releases the copy to
    the tensormap proxy.
    """
    for word in ("global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"):
        d.require(word)
    d.require(*_SCOPES)
    d.done(3)
    _size(d, d.operands[2])
    (target, size, offset, _), (source, source_size, source_offset, _) = map(
        d.address, d.operands[:2]
    )
    site = d.site

    def run(w: Warp, m: int) -> None:
        to = uniform(w, target, m, site, "destination", unsigned_view(size)) + offset
        at = uniform(w, source, m, site, "source", unsigned_view(source_size)) + source_offset
        w.agent.tensormap.copy_release(to, at, site=site)

    return d.plain(run, aligned=True)


@instruction("fence.proxy.tensormap::generic")
def fence(d: Decode) -> Op:
    """`.release.scope`, or `.acquire.scope [map], 128`."""
    which = d.require("acquire", "release")
    d.require(*_SCOPES)
    site = d.site
    if which == "release":
        d.done(0)
        return d.plain(lambda w, m: w.agent.tensormap.release(site=site))
    d.done(2)
    _size(d, d.operands[1])
    at = _place(d, d.operands[0], None)

    def run(w: Warp, m: int) -> None:
        for where, address in at(w, m):
            if where == "global":
                w.agent.tensormap.acquire(address, site=site)

    return d.plain(run)


def _size(d: Decode, operand: Operand) -> None:
    found = d.immediate(operand)
    if found != MAP_BYTES:
        raise d.malformed(f"expected a size of {MAP_BYTES}, got {found}")
