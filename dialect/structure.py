"""Structure of a warp-specialised kernel."""

from typing import Any

from tcir._mlir import ext, ir

from .base import TC


class RoleOp(TC.Operation, name="role", traits=[ir.NoTerminatorTrait]):
    """The part of a kernel that some warps run: ``kind`` names it, ``warps`` lists them.

    ``threads`` is ``"one"`` (one elected thread of the warp issues everything) or ``"warp"``. The block
    argument is the position of the executing warp in ``warps`` (0..len-1). Roles of one kernel run
    concurrently; values of the enclosing function may be used inside.
    """

    kind: ir.StringAttr
    warps: Any
    threads: ir.StringAttr
    body: ext.Region
