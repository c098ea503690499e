"""Registers."""

from typing import Any

from tcir.dialect.attributes import integers, not_arrays
from tcir.dialect.limits import SETMAXNREG
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify


class WarpgroupRegistersOp(Op, name="warpgroup_registers", issued_by="cta", async_only=True):
    """``setmaxnreg``: ``registers[n]`` per thread of warpgroup n, warps 4n to 4n + 3, from here on.

    The kernel is launched with as many registers as fit on the SM (``.maxnreg``). Warpgroups with
    smaller shares give back what those with larger ones take (PTX ISA 9.7.19, setmaxnreg).
    """

    example = """
    func.func @example() {
      "tc.warpgroup_registers"() {registers = array<i64: 232, 232, 40>} : () -> ()
      return
    }
    """
    form = "{registers}"

    registers: Any


@verify(
    WarpgroupRegistersOp,
    "registers",
    SETMAXNREG.source,
    "registers must be a non-empty array<i64> of counts that are {legal}, got {got}",
)
def _(op: WarpgroupRegistersOp) -> Broken:
    got = not_arrays(op, registers=None)
    if got is None:
        counts = integers(op, "registers")
        if counts and all(count in SETMAXNREG for count in counts):
            return None
    return {"legal": SETMAXNREG, "got": got or op.attributes["registers"]}
