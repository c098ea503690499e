"""cp.async.bulk and cp.reduce.async.bulk without a tensor map (PTX ISA 9.7.9.25.4)."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.atomic import OPERATIONS, combination
from tcir.interp.ptx.isa.mbarrier import MULTICAST, PerLane, shared_operand
from tcir.interp.ptx.isa.memory import AccessTarget, addresses, split
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import VIEW_DTYPES, unsigned_view, view
from tcir.interp.ptx.registry import DECODERS, instruction
from tcir.interp.ptx.syntax import TYPES, Operand, Type
from tcir.interp.ptx.threads import alike, one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.reduction import Reduction
from tcir.machine.tma.bulk import BulkSource

_U32_TYPE, _U16 = TYPES["u32"], TYPES["u16"]
_COMPLETE = "mbarrier::complete_tx::bytes"
_SCOPES = ("cta", "cluster", "gpu", "sys")


def _global(d: Decode, operand: Operand) -> PerLane:
    """Function (warp, mask) → global addresses; generic addresses must be in global memory."""
    place, site = AccessTarget.of(d, operand, "generic"), d.site

    def at(w: Warp, m: int) -> list[int]:
        found = addresses(w, place, m, site)
        if any(space != "global" for space, _, _ in split(found)):
            raise w.error("not-global", f"expected a global address, got {int(found[0]):#x}", site)
        return [int(a) for a in found]

    return at


def _values(d: Decode, operand: Operand, kind: Type) -> PerLane:
    slot = d.src(operand, kind)
    n, site = view(kind), d.site

    def at(w: Warp, m: int) -> list[int]:
        if w.undef[slot] & m:
            w.read_undefined(site, (slot,), m)
        return [int(v) for v in w.v[n][slot][LANE_INDICES[m]]]

    return at


def _relaxed(d: Decode, scopes: tuple[str, ...], reduction: bool = False) -> str | None:
    """The scope of a relaxed copy or reduction; None: it does not name one."""
    if d.take("relaxed") is None:
        if not reduction:
            d.skip("weak")
        return None
    scope = d.require(*scopes)
    if not reduction:
        d.require("b128")
    return scope


@instruction(
    "cp.async.bulk.shared::cluster.global",
    "cp.async.bulk.shared::cta.global",
    "cp.async.bulk.shared::cluster.shared::cta",
)
def load(d: Decode) -> Op:
    """`[dst], [src], size {, bytes left, bytes right}, [mbar] {, CTA mask} {, policy}`"""
    from_shared = d.name.endswith(".shared::cta")
    policy = not from_shared and d.take("L2::cache_hint") is not None
    if d.take(_COMPLETE) is None:
        raise d.malformed(f"expected .{_COMPLETE}")
    own = d.name.startswith("cp.async.bulk.shared::cta")
    scope = _relaxed(d, _SCOPES[: 2 if from_shared else 4])
    ignoring = own and d.take("ignore_oob") is not None
    multicast = not (own or from_shared) and d.take(*MULTICAST) is not None
    d.done(4 + 2 * ignoring + multicast + policy)
    target = shared_operand(d, d.operands[0], True)
    source = shared_operand(d, d.operands[1], True) if from_shared else _global(d, d.operands[1])
    size = _values(d, d.operands[2], _U32_TYPE)
    ends = [_values(d, o, _U32_TYPE) for o in d.operands[3:5]] if ignoring else []
    rest = d.operands[3 + len(ends) :]
    barrier = shared_operand(d, rest[0], True)
    masks = _values(d, rest[1], _U16) if multicast else None
    space, site = "shared" if from_shared else "global", d.site

    def run(w: Warp, m: int) -> None:
        count = m.bit_count()
        ignored = zip(*(end(w, m) for end in ends), strict=True) if ends else [(0, 0)] * count
        chosen = masks(w, m) if masks is not None else [None] * count
        rows = zip(
            target(w, m), source(w, m), size(w, m), barrier(w, m), ignored, chosen, strict=True
        )
        for to, at, nbytes, mbar, ignore, mask in one_by_one(w, m, rows):
            if own:
                w.agent.peers.cta_of(to, site, own=True)
            w.agent.bulk.load(
                to,
                BulkSource(space, at, nbytes),
                mbar,
                cta_mask=mask,
                ignore=ignore,
                scope=scope,
                site=site,
            )

    return d.plain(run)


@instruction(
    "cp.async.bulk.weak",
    "cp.async.bulk.relaxed",
    "cp.reduce.async.bulk.weak",
    "cp.reduce.async.bulk.relaxed",
)
def ordered(d: Decode) -> Op:
    """Decodes the same instruction as `load`, in the syntax that has the ordering before the state
    spaces (PTX ISA 9.3).
    """
    base, _, order = d.name.rpartition(".")
    scope = [d.modifiers.pop(0)] if d.modifiers and d.modifiers[0] in _SCOPES else []
    d.name = ".".join([base, *d.modifiers[:2]])
    if d.name not in DECODERS:
        raise d.malformed("expected two state spaces")
    d.modifiers = [order, *scope, *d.modifiers[2:]]
    return DECODERS[d.name](d)


@instruction("cp.async.bulk.global.shared::cta")
def store(d: Decode) -> Op:
    """`[dst], [src], size {, policy} {, byte mask}`"""
    policy = d.take("L2::cache_hint") is not None
    masked = d.take("cp_mask") is not None
    scope = _relaxed(d, _SCOPES)
    d.require("bulk_group")
    d.done(3 + policy + masked)
    target, source = _global(d, d.operands[0]), shared_operand(d, d.operands[1], True)
    size = _values(d, d.operands[2], _U32_TYPE)
    masks = _values(d, d.operands[-1], _U16) if masked else None
    site = d.site

    def run(w: Warp, m: int) -> None:
        chosen = masks(w, m) if masks is not None else [0xFFFF] * m.bit_count()
        rows = zip(target(w, m), source(w, m), size(w, m), chosen, strict=True)
        for to, at, nbytes, mask in alike(w, m, rows):  # they write one content
            w.agent.bulk.store(to, at, nbytes, byte_mask=mask, scope=scope, site=site)

    return d.plain(run)


#: Types of each reduction (PTX ISA 9.7.9.25.4.2), into global and into shared memory.
_INTEGERS = ("u32", "s32", "u64", "s64")
_GLOBAL_TYPES = {
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), (*_INTEGERS, "f16", "bf16")),
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
}
_SHARED_TYPES = {
    **dict.fromkeys(("and", "or", "xor"), ("b32",)),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32")),
    "add": ("u32", "s32", "u64"),
}


def _reduction(d: Decode, allowed: dict[str, tuple[str, ...]]) -> Reduction:
    """How two elements are combined, and their type."""
    d.skip("noftz")
    name = d.require(*(n for n in OPERATIONS if n != "exch"))
    kind = d.type("f16", "bf16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
    if kind.name not in allowed[name]:
        listed = ", ".join(f".{t}" for t in allowed[name])
        raise d.malformed(f"expected {listed} with .{name}, got .{kind.name}")
    dtype = VIEW_DTYPES[unsigned_view(kind.size) if kind.kind == "f" else view(kind)]
    combine = combination(d, name, kind)
    assert combine is not None  # only exch has none
    return Reduction(combine, np.dtype(dtype))


@instruction("cp.reduce.async.bulk.global.shared::cta")
def reduce(d: Decode) -> Op:
    """`[dst], [src], size {, policy}`: combines element by element, in any order."""
    policy = d.take("L2::cache_hint") is not None
    d.require("bulk_group")
    scope = _relaxed(d, _SCOPES, reduction=True)
    reduction = _reduction(d, _GLOBAL_TYPES)
    d.done(3 + policy)
    target, source = _global(d, d.operands[0]), shared_operand(d, d.operands[1], True)
    size, site = _values(d, d.operands[2], _U32_TYPE), d.site

    def run(w: Warp, m: int) -> None:
        rows = zip(target(w, m), source(w, m), size(w, m), strict=True)
        for to, at, nbytes in one_by_one(w, m, rows):
            w.agent.bulk.store(to, at, nbytes, reduction=reduction, scope=scope, site=site)

    return d.plain(run)


@instruction("cp.reduce.async.bulk.shared::cluster.shared::cta")
def reduce_in_cluster(d: Decode) -> Op:
    """`[dst], [src], size, [mbar]`: combines integers with those in the shared memory of a CTA of
    the cluster.
    """
    if d.take(_COMPLETE) is None:
        raise d.malformed(f"expected .{_COMPLETE}")
    scope = _relaxed(d, _SCOPES[:2], reduction=True)
    reduction = _reduction(d, _SHARED_TYPES)
    d.done(4)
    target, source = (shared_operand(d, o, True) for o in d.operands[:2])
    size, barrier = _values(d, d.operands[2], _U32_TYPE), shared_operand(d, d.operands[3], True)
    site = d.site

    def run(w: Warp, m: int) -> None:
        rows = zip(target(w, m), source(w, m), size(w, m), barrier(w, m), strict=True)
        for to, at, nbytes, mbar in one_by_one(w, m, rows):
            w.agent.bulk.load(
                to,
                BulkSource("shared", at, nbytes),
                mbar,
                reduction=reduction,
                scope=scope,
                site=site,
            )

    return d.plain(run)
