"""Rules about tiles in tensor memory that two roles access in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from tcir._mlir import ir
from tcir.dialect.attributes import defining, string
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import Found, KernelOp, KernelView, verify_in_kernel
from tcir.dialect.loops import EXCHANGES
from tcir.dialect.ops.block_scale import MmaBlockScaleOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.lanes import EnableLanesOp
from tcir.dialect.ops.memory import SlotOp
from tcir.dialect.ops.movement import TmemLdOp, TmemStOp
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.ops.sync import CommitOp, MbarrierArriveOp, MbarrierWaitOp
from tcir.dialect.ops.tmem_words import TmemLdWordsOp, TmemStWordsOp
from tcir.dialect.types import TmemType

Tiles = dict[ir.Value, dict[RoleOp, KernelOp]]
"""Tile, or ring of tiles -> role -> its last access."""


@verify_in_kernel(
    "exchange",
    "PTX ISA 9.7.16.6.4",
    "{before} and {after} access a tile in turn, and this access of {before} is not complete when "
    "{after} goes on: no barrier on which {before} arrives after it leads to a wait of {after}",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    for roles in _exchanged(kernel).values():
        for before, after in permutations(roles, 2):
            if not _leads(kernel, roles[before], before, after):
                names = {"before": string(before, "kind"), "after": string(after, "kind")}
                yield roles[before].op, names


def _exchanged(kernel: KernelView) -> Tiles:
    """Last accesses to each tile that several roles access, one of them writing, in loops with
    `EXCHANGES`."""
    accesses: Tiles = {}
    written: set[ir.Value] = set()
    for site in kernel.sites:
        for tile, writes in _accesses(site.op):
            if site.role is not None and _exchanges(site):
                accesses.setdefault(tile, {})[site.role] = site
                if writes:
                    written.add(tile)
    return {tile: roles for tile, roles in accesses.items() if tile in written and len(roles) > 1}


def _accesses(op: ir.OpView) -> Iterator[tuple[ir.Value, bool]]:
    """Tiles in tensor memory that an op accesses, and whether it writes."""
    if isinstance(op, MmaOp | MmaBlockScaleOp):
        yield _tile(op.d), True
        if isinstance(op.a.type, TmemType):
            yield _tile(op.a), False
    elif isinstance(op, TmemLdOp | TmemLdWordsOp):
        yield _tile(op.source), False
    elif isinstance(op, TmemStOp | TmemStWordsOp):
        yield _tile(op.target), True


def _tile(value: ir.Value) -> ir.Value:
    masked = defining(value, EnableLanesOp)
    tile = masked.d if masked else value
    slot = defining(tile, SlotOp)
    return tile if slot is None else slot.ring


def _exchanges(site: KernelOp) -> bool:
    op = site.op.operation.parent
    while op is not None and op.name != RoleOp.OPERATION_NAME:
        if EXCHANGES in op.attributes:
            return True
        op = op.parent
    return False


def _leads(kernel: KernelView, site: KernelOp, first: RoleOp, last: RoleOp) -> bool:
    """Whether arrivals after `site` let a role wait, directly or by way of others."""
    behind = kernel.sites[kernel.sites.index(site) :]
    told = {barrier_of(each.op.bar) for each in behind if _arrives(each) and each.role == first}
    reached = {first}
    while True:
        new = {
            each.role
            for each in kernel.sites
            if isinstance(each.op, MbarrierWaitOp)
            and barrier_of(each.op.bar) in told
            and each.role is not None
        } - reached
        if last in new:
            return True
        if not new:
            return False
        reached |= new
        told |= {
            barrier_of(each.op.bar) for each in kernel.sites if _arrives(each) and each.role in new
        }


def _arrives(site: KernelOp) -> bool:
    return isinstance(site.op, CommitOp | MbarrierArriveOp)
