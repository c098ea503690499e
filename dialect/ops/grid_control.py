"""Ops of programmatic dependent launch."""

from tcir._mlir import ir
from tcir.dialect.operation import Op, traits_of
from tcir.dialect.types import TensorMapType

PROGRAMMATIC = "tc.programmatic"
"""Attribute of a kernel that may start before the previous launch has ended."""


def accesses_global(op: ir.OpView) -> bool:
    """Whether `op` reads or writes global memory itself."""
    traits = traits_of(op)
    if traits.loads or traits.stores or op.operation.name in ("memref.load", "memref.store"):
        return True
    return any(isinstance(value.type, TensorMapType) for value in op.operands)


class GridWaitOp(Op, name="grid_wait", async_only=True):
    """``griddepcontrol.wait``: waits until the previous launches have ended.

    When they have ended, all of their writes are visible. A kernel with the attribute
    ``tc.programmatic`` may start earlier (programmatic stream serialization), so an access to
    global memory must come after this op, in the same role or before the roles. In a launch that is
    not programmatic the op does nothing (PTX ISA 9.7.13, griddepcontrol).
    """

    example = """
    func.func @example() {
      "tc.grid_wait"() : () -> ()
      return
    }
    """


class GridLaunchDependentsOp(Op, name="grid_launch_dependents", async_only=True):
    """``griddepcontrol.launch_dependents``: the next launch need not wait for this CTA to end.

    The next launch may start when every CTA has executed this op or ended. The op does not make any
    writes visible; for that the next launch waits with ``tc.grid_wait`` (PTX ISA 9.7.13,
    griddepcontrol).
    """

    example = """
    func.func @example() {
      "tc.grid_launch_dependents"() : () -> ()
      return
    }
    """
