"""Rules about tiles in tensor memory that two warp roles access in turn."""

from __future__ import annotations

from tcir.dialect.attributes import string
from tcir.dialect.kernel.paths import TileAccess, reuses_of
from tcir.dialect.kernel.view import Found, KernelView, verify_in_kernel
from tcir.dialect.loops import EXCHANGES
from tcir.dialect.ops.memory import TmemTileOp
from tcir.dialect.ops.structure import RoleOp


@verify_in_kernel(
    "exchange",
    "PTX ISA 9.7.16.6.4",
    "{before} and {after} access a tile in turn, and this access of {before} is not complete when "
    "{after} goes on: no barrier on which {before} arrives after it leads to a wait of {after}",
)
def _(kernel: KernelView) -> Found:
    if not any(EXCHANGES in site.op.operation.attributes for site in kernel.sites):
        return
    for reuse in reuses_of(kernel):
        for path in reuse.missing:
            roles = [string(each.site.role, "kind") for each in (path.before, path.after)]
            if all(map(_exchanges, (path.before, path.after))):
                yield path.before.site.op, dict(zip(("before", "after"), roles, strict=True))


def _exchanges(access: TileAccess) -> bool:
    """Whether an access is to tensor memory, in a loop in which roles take turns."""
    if not isinstance(access.tile.owner.opview, TmemTileOp):
        return False
    around = access.site.op.operation.parent
    while around is not None and around.name != RoleOp.OPERATION_NAME:
        if EXCHANGES in around.attributes:
            return True
        around = around.parent
    return False
