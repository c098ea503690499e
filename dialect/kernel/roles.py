"""Rules about warp roles: the warps of each role, and ops that must not be outside roles."""

from __future__ import annotations

from math import prod

from tcir.dialect.attributes import integer, integers, optional_integer
from tcir.dialect.kernel.view import (
    LAUNCH,
    Found,
    KernelView,
    triple,
    verify_in_kernel,
)
from tcir.dialect.limits import QUARTERS, WARP
from tcir.dialect.ops.memory import (
    TmemAllocOp,
)
from tcir.dialect.ops.movement import TmemLdOp, TmemStOp
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.ops.sync import CtaBarrierOp, FirstWarpBarrierOp
from tcir.dialect.ops.tmem_words import TmemLdWordsOp, TmemStWordsOp


@verify_in_kernel(
    "once",
    "PTX ISA 9.7.13.15, 9.7.16.7",
    "{got} must not stand in a loop or branch: barriers and tensor memory are set up once",
)
def _(kernel: KernelView) -> Found:
    repeatable = CtaBarrierOp | FirstWarpBarrierOp
    for site in kernel.sites:
        if site.nested and site.traits.issued_by == "cta" and not isinstance(site.op, repeatable):
            yield site.op, {"got": site.name}


@verify_in_kernel(
    "roles-top-level",
    "tc",
    "roles must stand directly in the kernel, got one in a {got}: each warp enters its role once",
)
def _(kernel: KernelView) -> Found:
    for role in kernel.roles:
        parent = role.operation.parent
        if parent != kernel.func.operation:
            yield role, {"got": parent.name}


@verify_in_kernel(
    "roles-disjoint",
    "tc",
    "warp {got} already has a role ({other}): roles run concurrently, and a warp runs one",
)
def _(kernel: KernelView) -> Found:
    taken: dict[int, str] = {}
    for role in kernel.roles:
        for warp in integers(role, "warps"):
            if warp in taken:
                yield role, {"got": warp, "other": taken[warp]}
            taken[warp] = role.kind.value


@verify_in_kernel(
    "warp-in-block",
    LAUNCH,
    "warp {got} does not exist: tc.block has {warps} warps",
)
def _(kernel: KernelView) -> Found:
    block = triple(kernel, "tc.block")
    if block is None:
        return
    warps = prod(block) // WARP
    for role in kernel.roles:
        for warp in integers(role, "warps"):
            if warp >= warps:
                yield role, {"got": warp, "warps": warps}
    for op in kernel.of(TmemAllocOp):
        if (optional_integer(op, "warp") or 0) >= warps:
            yield op, {"got": integer(op, "warp"), "warps": warps}


_QUARTER_OPS = (TmemLdOp, TmemStOp, TmemLdWordsOp, TmemStWordsOp)
"""Ops of a warp on the lanes of its sub-partition."""


@verify_in_kernel(
    "epilogue-quarters",
    "PTX ISA 9.7.16.8",
    "a role that reads or writes tensor memory needs whole warpgroups, warps 4n to 4n + 3 in "
    "a row, got {got}: warp w reaches the lanes of quarter w mod 4 only",
)
def _(kernel: KernelView) -> Found:
    readers = [s.role for s in kernel.sites if s.role and isinstance(s.op, _QUARTER_OPS)]
    for role in kernel.roles:
        warps = integers(role, "warps")
        first, count = warps[0], len(warps)
        in_a_row = warps == list(range(first, first + count))
        if role in readers and (first % QUARTERS or count % QUARTERS or not in_a_row):
            yield role, {"got": warps}


@verify_in_kernel(
    "roles-adjacent",
    "tc",
    "the roles of a kernel must follow each other, got {got} between them: they run concurrently",
)
def _(kernel: KernelView) -> Found:
    top = [s.op for s in kernel.sites if not s.nested and s.role is None]
    at = [i for i, op in enumerate(top) if isinstance(op, RoleOp)]
    if at:
        for op in top[at[0] : at[-1]]:
            if not isinstance(op, RoleOp):
                yield op, {"got": op.operation.name}


@verify_in_kernel(
    "in-role",
    "PTX ISA 9.7.16.5, table 46",
    "{got} must be inside a role: in a kernel with roles, ops outside are executed by the whole "
    "CTA",
)
def _(kernel: KernelView) -> Found:
    if not kernel.roles:
        return
    for site in kernel.sites:
        if site.traits.issued_by in ("thread", "warp") and site.role is None:
            yield site.op, {"got": site.name}
